"""How objects are written that pickle has no way for, or one that drops a part of them."""

from __future__ import annotations

import sys
import weakref
from decimal import Context, getcontext
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from distrain_nb.worker.fingerprint import dict_of
from distrain_nb.worker.pickles import (
    View,
    out_of_band,
    set_attributes,
    set_optimizer,
    set_parametrized,
    set_tensor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.program.values.pickling import Definitions
    from distrain_nb.worker.pickles import Writer

_ALONE = 2  # references to a `__dict__`: its object's, and that of who counts


def _method(method: MethodType) -> Any:
    """Return how a bound method is written that its object doesn't give by the function's name,
    such as `net.forward = MethodType(forward, net)`, or no more, after `old = net.forward` and
    `net.forward = new`: pickle asks the object by that name."""
    owner, function = method.__self__, method.__func__
    classes = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
    name = getattr(function, "__name__", "")
    member = next((vars(cls)[name] for cls in classes if name in vars(cls)), None)
    if getattr(member, "__func__", member) is function and name not in dict_of(owner):
        return NotImplemented
    return out_of_band, ("method", function, owner)


def _weak(reference: Any) -> Any:
    """Return how a weak reference, or a collection of these, is written. What is alive here stays
    alive in the run."""
    if isinstance(reference, weakref.ref):
        there = reference()
        if there is None or reference.__callback__ is not None:
            return NotImplemented
        return out_of_band, ("weak", weakref.ref, there)
    content = [*reference] if isinstance(reference, weakref.WeakSet) else {**reference}
    return out_of_band, ("weak", type(reference), content)


def _decimal_context(context: Context) -> Any:
    """Return how a context of decimal numbers is written: by its thread, which asks it."""
    return (getcontext, ()) if context is getcontext() else NotImplemented


_BY_TYPE: dict[type, Callable[[Any], Any]] = {
    staticmethod: lambda method: (staticmethod, (method.__func__,)),
    classmethod: lambda method: (classmethod, (method.__func__,)),
    property: lambda prop: (property, (prop.fget, prop.fset, prop.fdel, prop.__doc__)),
    cached_property: lambda prop: (
        *(cached_property, (prop.func,)),
        {"attrname": prop.attrname, "__doc__": prop.__doc__},
    ),
    MethodType: _method,
    Context: _decimal_context,
    weakref.ref: _weak,
    weakref.WeakValueDictionary: _weak,
    weakref.WeakKeyDictionary: _weak,
    weakref.WeakSet: _weak,
}


def reduced(obj: Any) -> Any:
    """Return how an object is written; NotImplemented where its own way is right."""
    reduce = _BY_TYPE.get(type(obj))
    if reduce is not None:
        return reduce(obj)
    return _parametrized(obj) if "parametrizations" in _modules(obj) else NotImplemented


def _modules(obj: Any) -> Any:
    is_module = "torch" in sys.modules and hasattr(type(obj), "named_parameters")
    return vars(obj).get("_modules", ()) if is_module else ()


def _parametrized(module: Any) -> Any:
    """Return how a module is written of which PyTorch has made a class of its own."""
    base = type(module).__base__
    if base is None or type(module).__name__ != f"Parametrized{base.__name__}":
        return NotImplemented
    return object.__new__, (base,), {**vars(module)}, None, None, set_parametrized


def completed(obj: Any) -> Any:
    """Return how an object is written whose own way drops the causes of an exception, an
    optimizer's hooks, or that others share its `__dict__`; NotImplemented for all others."""
    cls = type(obj)
    if isinstance(obj, BaseException) and (obj.__cause__ or obj.__context__):
        if cls.__setstate__ is not BaseException.__setstate__:
            return NotImplemented
        parts = tuple(obj.__reduce_ex__(4))
        names = ("__context__", "__cause__", "__suppress_context__")
        state = {**(parts[2] if parts[2:] else {}), **{n: getattr(obj, n) for n in names}}
        return *parts[:2], state, None, None, set_attributes
    if hasattr(cls, "register_step_post_hook"):
        return _optimizer(obj)
    if not cls.__dictoffset__ or any(
        getattr(cls, name, None) is not getattr(object, name, None)
        for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__")
    ):
        return NotImplemented
    if sys.getrefcount(vars(obj)) <= _ALONE:
        return NotImplemented
    make, arguments, state, *items = tuple(obj.__reduce_ex__(4))
    if state is not None and state is not vars(obj):  # it has slots too
        return NotImplemented
    return make, arguments, {"__dict__": vars(obj)}, *items, set_attributes


def _optimizer(optimizer: Any) -> Any:
    hooks = {n: part for n, part in vars(optimizer).items() if n.endswith("_hooks") and part}
    is_counted = hasattr(optimizer.step, "_wrapped_by_lr_sched")
    if not hooks and not is_counted:
        return NotImplemented
    make, arguments, state, *_ = tuple(optimizer.__reduce_ex__(4))
    return make, arguments, (state, hooks, is_counted), None, None, set_optimizer


def with_state(tensor: Any, written: Any) -> Any:
    """Add to how a tensor is written what else it has: its gradient, and what is called with it."""
    state = {
        name: part
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks", "grad")
        if (tensor.is_leaf or name != "grad") and (part := getattr(tensor, name, None)) is not None
    }
    if not state or len(written) > 2:
        return written
    return (*written, state, None, None, set_tensor)


def keras_object(obj: Any, definitions: Definitions) -> Any:
    """Return how a model or a layer of Keras is written, with those of the notebook's definitions
    that its configuration names: Keras looks for them by these names."""
    read, (file,) = obj.__reduce__()
    with ZipFile(file) as parts:
        config = parts.read("config.json").decode()
    named = ((n, v) for n, v in definitions.namespace.items() if f'"{n}"' in config)
    own = {name: value for name, value in named if definitions.names(value)}
    return out_of_band, ("keras", read, file.getvalue(), own)


def view(array: Any, writer: Writer) -> Any:
    """Return how an array is written as a view of the memory that it shares with others, all of
    which is written once; None for a small view of memory that is not."""
    numpy, base = sys.modules["numpy"], array
    while type(base.base) in (numpy.ndarray, numpy.memmap):
        base = base.base
    address = base.__array_interface__["data"][0]
    if not (base.nbytes and base.flags.forc):
        return None
    begin = array.__array_interface__["data"][0]
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True) if n]
    low, high = (sum(step for step in steps if (step > 0) is up) for up in (False, True))
    reach = View((address, base.nbytes), begin + low, begin + high + array.itemsize, id(array))
    room = writer.room(reach, array.nbytes)
    if room is None:
        return None
    flat = base.reshape(-1, order="C" if base.flags.c_contiguous else "F")
    first, size = room[0] - address, room[1]
    start = writer.written(room, base, lambda: flat.view("u1").data[first : first + size])
    layout = begin - room[0], array.shape, array.strides, array.flags.writeable
    return out_of_band, ("view", start, size, array.dtype, layout)
