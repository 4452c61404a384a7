"""What an object holds, and what tells whether it has changed."""

from __future__ import annotations

import gc
import io
import sys
from collections import deque
from itertools import count, islice
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import ref

from distrain_nb.worker.fingerprint import dict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ANSWERS = (bool, int, str, type(None))
_UNCHANGING = (bool, int, float, complex, str, bytes, type(None))
_NO_STATE = (*_UNCHANGING, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
CHANGING = (dict, list, set, deque, bytearray, io.StringIO, io.BytesIO)  # by all their methods
_MOST_PARTS, _MOST_ITEMS = 1000, 100
_MOST_TEXT = 4096  # bytes of a text that is kept


def reachable(values: Iterable[object]) -> Iterator[object]:
    """Yield values, and what lists and dicts among them hold, as far as it may change."""
    for value in values:
        items = value.values() if type(value) is dict else value if type(value) is list else ()
        every = (value, *islice(items, _MOST_ITEMS))
        yield from (item for item in every if not isinstance(item, _NO_STATE))


def may_have_taken(thing: object, stores: set[str]) -> bool:
    """Return whether code that stores such attributes may have put a rank, a size or a name into
    it."""
    if not stores or is_model(thing):
        return False
    if hasattr(type(thing), "tobytes"):
        return "fill" in stores
    inside = attributes_of(thing)
    plain = {n for n, v in inside.items() if isinstance(v, ANSWERS) and n[:2] != "__"}
    items = isinstance(thing, dict) or any(isinstance(v, dict) for v in inside.values())
    return bool(plain & stores) or ("*" in stores and bool(plain)) or ("[]" in stores and items)


def is_model(thing: object) -> bool:
    """Return whether an object is a model, whose weights travel where it is made again."""
    return hasattr(type(thing), "state_dict") or hasattr(type(thing), "get_weights")


def attributes_of(thing: object) -> dict[str, Any]:
    """Return what an object holds in its dict and its slots."""
    inside = dict(dict_of(thing))
    for base in type(thing).__mro__[:-1]:
        slots = vars(base).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        inside.update((n, getattr(thing, n)) for n in names if hasattr(thing, n))
    return inside


def part_names(thing: object) -> Iterator[str]:
    """Yield the names of an object's attributes, or the texts that are keys of a dict."""
    if isinstance(thing, (type, *_NO_STATE)):
        return
    yield from (key for key in dict_of(thing) if isinstance(key, str))
    if isinstance(thing, dict):
        yield from (key for key in islice(thing, _MOST_PARTS) if isinstance(key, str))


def array_of(thing: Any) -> object:
    """Return what tells of a change in an array or tensor; None of what is neither."""
    cls = type(thing)
    if hasattr(cls, "data_ptr"):
        is_weight = cls.__module__.startswith("torch.nn.parameter")  # which travel
        return None if is_weight else (thing.data_ptr(), thing._version)
    if cls.__module__ != "numpy" or not hasattr(cls, "tobytes"):
        return None
    size = getattr(thing, "size", 1)
    flat = thing.reshape(-1)[:: max(1, size // 64)] if size and thing.ndim else thing
    return str(thing.dtype), thing.shape, flat.tobytes()


def may_change(thing: object) -> bool:
    return isinstance(thing, CHANGING) or hasattr(type(thing), "__dict__") or is_iterator(thing)


def is_iterator(thing: object) -> bool:
    """Return whether an object is an iterator of Python's own, such as that of a list."""
    return hasattr(type(thing), "__next__") and type(thing).__module__ in ("builtins", "itertools")


def place_in(thing: Any) -> object:
    """Return what tells how far an iterator of Python's own is, or a text in memory; None for
    others."""
    if isinstance(thing, (io.StringIO, io.BytesIO)):
        return thing.tell(), thing.getvalue()[:_MOST_TEXT]
    if isinstance(thing, GeneratorType):  # whose `f_locals` would keep what it has left behind
        at = thing.gi_frame.f_lasti if thing.gi_frame else "its end"
        return at, [state_of(part, 1) for part in gc.get_referents(thing)]
    if not is_iterator(thing):
        return None
    return repr(thing) if isinstance(thing, count) else state_of(thing.__reduce__()[1:])


def memory_of(thing: Any) -> int:
    """Return where the memory of an array, a tensor or a view begins; 0 for others."""
    try:
        if isinstance(thing, (bytearray, memoryview)):
            return id(getattr(thing, "obj", thing))
        if hasattr(type(thing), "untyped_storage"):
            return 0 if hasattr(thing, "fake_mode") else int(thing.untyped_storage().data_ptr())
        if not hasattr(type(thing), "__array_interface__"):
            return 0  # before its own `__getattr__` is asked for anything
        while type(getattr(thing, "base", None)).__module__ == "numpy":
            thing = thing.base
        return int(thing.__array_interface__["data"][0]) if array_of(thing) else 0
    except Exception:  # a tensor without memory
        return 0


def held(thing: object) -> Callable[[], object]:
    try:
        return ref(thing)
    except TypeError:
        return lambda: thing


def as_now(thing: object) -> Callable[[object], bool]:
    """Return what tells whether something is the same object, or an equal number or text. It keeps
    no object alive."""
    if isinstance(thing, _UNCHANGING) and sys.getsizeof(thing) < _MOST_TEXT:
        return lambda other: type(other) is type(thing) and repr(other) == repr(thing)
    try:
        there = ref(thing)
    except TypeError:
        number, cls = id(thing), type(thing)
        return lambda other: (id(other), type(other)) == (number, cls)
    return lambda other: other is not None and there() is other


def state_of(thing: object, depth: int = 3) -> object:
    """Return what shows whether an object has got other parts; of a model those that are no
    weights."""
    if isinstance(thing, _UNCHANGING):
        return thing if thing == thing else "nan"
    if not depth or isinstance(thing, _NO_STATE):
        return id(thing)
    if isinstance(thing, dict):
        items = [*thing.items()][:_MOST_PARTS]
        return (len(thing), [(state_of(k, 0), state_of(v, depth - 1)) for k, v in items])
    if isinstance(thing, (list, tuple, set, frozenset, deque)):
        return (len(thing), [state_of(v, depth - 1) for v in [*thing][:_MOST_PARTS]])
    place = place_in(thing)
    if place is not None:
        return id(thing), place
    array = array_of(thing)
    if array is not None:
        return id(thing), array
    if depth == 1:  # a dict that is made here has another identity each time
        return id(thing)
    inside = attributes_of(thing)
    inside = {name: value for name, value in inside.items() if not str(name).startswith("__")}
    if is_model(thing):
        plain = {n: v for n, v in inside.items() if isinstance(v, _UNCHANGING) and n != "training"}
        inside = {n: v for n, v in plain.items() if n[0] != "_"}
    return (id(thing), state_of(inside, depth - 1)) if inside else id(thing)
