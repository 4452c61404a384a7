"""Pickles whose arrays lie in a file of their own.

The bytes of NumPy arrays and tensors go to one file, each aligned to 64 bytes, and are mapped
copy-on-write when read: ranks on one machine share their pages, and the files survive a change of
NumPy's or torch's version. NumPy and torch are touched only where a value is theirs. By hand, as
joblib maps no tensors, and where ranks run there need not be any. This module keeps its dotted
name, which stands in pickles on disk.
"""

from __future__ import annotations

import functools
import importlib
import io
import math
import pickle
import sys
from types import MethodType, ModuleType
from typing import (
    Any,
    BinaryIO,
    Callable,
    Collection,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

from distrain_nb.worker.functions import builders
from distrain_nb.worker.older_classes import make_older_class

_ALIGNMENT = 64
_alive: List[Any] = []  # what the notebook keeps alive, of which the program has weak references


Memory = Tuple[int, int]  # the address and the bytes of what arrays or tensors share


class View(NamedTuple):
    """Where an array or tensor reaches in memory, from an address to another one."""

    memory: Memory
    start: int
    end: int
    owner: int  # the identity of the array or tensor


class Writer(pickle.Pickler):
    """Pickles objects to `objects`, and the bytes of arrays to `arrays`. Small views of memory that
    is not in `entire`, or not yet, are written as copies, and are in `copies` then."""

    entire: Collection[Memory] = ()

    def __init__(self, objects: BinaryIO, arrays: BinaryIO) -> None:
        super().__init__(objects, protocol=4)
        self.arrays = arrays
        self.storages: Dict[Memory, int] = {}
        self.copies: List[View] = []
        self._owners: List[Any] = []  # which stay alive, so that addresses stay unique

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        if _is_array(obj):
            return self._array(obj)
        if _is_tensor(obj):
            return self._tensor(obj)
        return NotImplemented

    def forget_from(self, offset: int) -> None:
        """Drop the arrays that lie at `offset` and behind it: their value could not be saved."""
        self.arrays.seek(offset)
        self.arrays.truncate()
        self.storages = {k: start for k, start in self.storages.items() if start < offset}

    def _append(self, data: Any) -> int:
        self.arrays.write(b"\0" * (-self.arrays.tell() % _ALIGNMENT))
        start = self.arrays.tell()
        self.arrays.write(data)
        return start

    def _array(self, array: Any) -> Any:
        numpy = sys.modules["numpy"]
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        flat = numpy.ascontiguousarray(array.T if fortran else array).reshape(-1)
        start = self._append(flat.view("u1").data if flat.nbytes else b"")
        return out_of_band, ("array", start, array.shape, array.dtype, "F" if fortran else "C")

    def _tensor(self, tensor: Any) -> Any:
        torch = sys.modules["torch"]
        data = tensor.detach()
        if data.device.type not in ("cpu", "cuda"):
            data = data.cpu()
        storage = data.untyped_storage()
        memory, width = (storage.data_ptr(), storage.nbytes()), data.element_size()
        reach = sum((n - 1) * step for n, step in zip(data.shape, data.stride()))
        end = data.data_ptr() + (reach + 1) * width
        view = View(memory, data.data_ptr(), end, id(tensor))
        room = self.room(view, data.numel() * width)
        if room is None:
            data = data.clone(memory_format=torch.contiguous_format)
            storage = data.untyped_storage()
            room = memory = (storage.data_ptr(), storage.nbytes())
        first = room[0] - memory[0]
        size = room[1]
        start = self.written(room, storage, lambda: _bytes_of(storage)[first : first + size])
        layout = (data.storage_offset() - first // width, tuple(data.shape), data.stride())
        dtype = str(data.dtype).split(".")[1]
        parameter = type(tensor) is torch.nn.Parameter
        state = (layout, parameter, tensor.requires_grad)
        return out_of_band, ("tensor", start, size, dtype, *state)

    def room(self, view: View, size: int) -> Optional[Memory]:
        """Return what is written as a whole for a view of so many bytes: its memory, or a part that
        other views have too; None where the view is written as a copy."""
        memory = view.memory
        if size * 2 >= memory[1] or memory in self.entire or memory in self.storages:
            return memory
        for part in self.entire:
            inside = memory[0] <= part[0] and sum(part) <= sum(memory)
            if inside and part[0] <= view.start and view.end <= sum(part):
                return part
        if size * 2 >= view.end - view.start:  # columns would reach over each other's numbers
            self.copies.append(view)
        return None

    def written(self, memory: Memory, owner: Any, data: Callable[[], Any]) -> int:
        """Return where memory is written, of which there is one copy."""
        if memory not in self.storages:
            self.storages[memory] = self._append(data())
            self._owners.append(owner)
        return self.storages[memory]


def _bytes_of(storage: Any) -> Any:
    torch = sys.modules["torch"]
    data = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage.cpu())
    return data.numpy().data if storage.nbytes() else b""


def set_tensor(tensor: Any, state: Mapping[str, Any]) -> None:
    """Give a tensor its gradient, and what is called with it."""
    for name, value in state.items():
        setattr(tensor, name, value)


def set_attributes(obj: Any, state: Mapping[str, Any]) -> None:
    """Give an object attributes, or a `__dict__` that others share, past its class's own way."""
    for name, value in state.items():
        object.__setattr__(obj, name, value)


def set_optimizer(optimizer: Any, parts: Tuple[Mapping[str, Any], Mapping[str, Any], bool]) -> None:
    """Give an optimizer its state, its hooks, and the `step` by which a scheduler sees its
    calls."""
    state, hooks, is_counted = parts
    optimizer.__setstate__(state)
    for name, functions in hooks.items():
        vars(optimizer)[name].update(functions)
    if is_counted:
        step = optimizer.step.__func__

        @functools.wraps(step)
        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            self._opt_called = True
            return step(self, *args, **kwargs)

        counted._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
        optimizer.step = MethodType(counted, optimizer)


def set_parametrized(module: Any, state: Mapping[str, Any]) -> None:
    """Give a parametrized module its attributes, and the class that PyTorch makes for it."""
    from torch.nn.utils import parametrize

    vars(module).update(state)
    parametrize._inject_new_class(module)
    for name in state["_modules"]["parametrizations"]:
        parametrize._inject_property(module, name)


class OutOfBounds(ValueError):
    """A number in a pickle says that a value lies where there is none."""


def _as_whole_number(number: Any) -> int:
    """Return a count of bytes or elements. Raises OutOfBounds for anything else."""
    if type(number) is not int or number < 0:
        raise OutOfBounds(f"{number!r} in place of a count")
    return number


def count_of(shape: Any) -> int:
    """Return how many elements an array of that shape has."""
    if type(shape) is not tuple:
        raise OutOfBounds(f"{shape!r} in place of a shape")
    count = 1
    for length in shape:
        count *= _as_whole_number(length)
    return count


def _check_layout(layout: Any, elements: int) -> None:
    """Raise OutOfBounds where a tensor of that offset, shape and strides, in elements, reaches
    outside of so many of them."""
    offset, shape, strides = layout
    if count_of(shape):
        count_of(strides)
        steps = sum((length - 1) * stride for length, stride in zip(shape, strides))
        if len(shape) != len(strides) or _as_whole_number(offset) + steps >= elements:
            raise OutOfBounds(f"a tensor of the layout {layout!r} in {elements} elements")


def overlapping(views: Collection[View]) -> List[Memory]:
    """Return the parts of memory in which views, each the whole of another array or tensor, reach
    over each other."""
    parts: List[Memory] = []
    for memory in {view.memory for view in views}:
        spans = sorted({(v.start, v.end, v.owner) for v in views if v.memory == memory})
        first, last, is_shared = memory[0], memory[0], False
        for start, end, _ in (*spans, (sum(memory), sum(memory), 0)):
            if start < last:
                is_shared, last = True, max(last, end)
                continue
            if is_shared:
                parts.append((first, last - first))
            # Aligned, so that tensors of every type can begin where they do.
            first, last, is_shared = start - (start - memory[0]) % 16, end, False
    return parts


class Restoring:
    """Restores what a pickle holds out of band; `namespace` has the program's names."""

    def __init__(self, arrays: Any, namespace: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self.namespace = namespace
        self.storages: Dict[Tuple[int, int], Any] = {}

    def restore(self, kind: str, *state: Any) -> Any:
        restore: Dict[str, Callable[..., Any]] = {
            "array": self._array,
            "view": self._view,
            "tensor": self._tensor,
            "notebook": self._notebook,
            "inside": lambda module: module,
            "of package": _of_package,
            "weak": self._weak,
            "keras": self._keras,
            "older class": functools.partial(make_older_class, self.namespace),
            **builders(self.namespace),
        }
        return restore[kind](*state)

    def _array(self, start: int, shape: Tuple[int, ...], dtype: Any, order: Any) -> Any:
        import numpy

        if not isinstance(dtype, numpy.dtype):
            raise OutOfBounds(f"an array of {dtype!r}")
        room = self._room(start, count_of(shape) * dtype.itemsize)
        return numpy.ndarray(shape, dtype, room, 0, order=order)

    def _view(self, start: int, size: int, dtype: Any, layout: Tuple[Any, ...]) -> Any:
        import numpy

        offset, shape, strides, writeable = layout
        array = numpy.ndarray(shape, dtype, self._room(start, size), offset, strides)
        array.flags.writeable = writeable
        return array

    def _tensor(
        self,
        start: int,
        size: int,
        dtype: str,
        layout: Tuple[Any, ...],
        parameter: bool,
        requires_grad: bool,
    ) -> Any:
        import torch

        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype) or dtype.startswith("q"):  # nor do we write those
            raise OutOfBounds(f"a tensor of {dtype!r}")
        tensor = torch.empty(0, dtype=kind, device="cpu")
        width = tensor.element_size()
        _check_layout(layout, _as_whole_number(size) // width)
        if _as_whole_number(start) % width:
            raise OutOfBounds(f"a tensor of {dtype} that begins at byte {start}")
        tensor.set_(self._storage(start, size), *layout)
        if parameter:
            return torch.nn.Parameter(tensor, requires_grad)
        return tensor.requires_grad_(requires_grad)

    def _storage(self, start: int, size: int) -> Any:
        import torch

        if not size:
            return torch.empty(0, dtype=torch.uint8, device="cpu").untyped_storage()
        if (start, size) not in self.storages:
            data = torch.frombuffer(self._room(start, size), dtype=torch.uint8)
            self.storages[start, size] = data.untyped_storage()
        return self.storages[start, size]

    def _room(self, start: Any, size: int) -> Any:
        """Return the bytes from `start` on. Raises OutOfBounds where they aren't all there."""
        if _as_whole_number(start) + _as_whole_number(size) > len(self.arrays) and size:
            have = f"{len(self.arrays):,} bytes"
            raise OutOfBounds(f"{size} bytes from byte {start} on, of a file of {have}")
        return memoryview(self.arrays)[start : start + size] if size else bytearray()

    def _weak(self, kind: Any, content: Any) -> Any:
        _alive.append(content)
        return kind(content)

    def _keras(self, read: Any, content: bytes, own: Dict[str, Any]) -> Any:
        with importlib.import_module("keras").saving.custom_object_scope(own):
            return read(io.BytesIO(content))

    def _notebook(self, path: str) -> Any:
        name, *rest = path.split(".")
        value = self.namespace[name]
        for attribute in rest:
            value = getattr(value, attribute)
        return value


def _of_package(module: str, name: str, kind: str) -> Any:
    """Return what a package keeps by a name. Raises AttributeError where that is something else
    than in the notebook, as before a function of the package has set it."""
    value = getattr(importlib.import_module(module), name)
    if f"{type(value).__module__}.{type(value).__qualname__}" != kind:
        has = type(value).__qualname__
        raise AttributeError(f"{module}.{name} is {has} in the run, {kind} in the notebook")
    return value


class Reader(pickle.Unpickler):
    """Reads what `Writer` wrote, whatever it is: it runs the code that a pickle names."""

    def __init__(self, objects: BinaryIO, restoring: Restoring) -> None:
        super().__init__(objects)
        self._restoring = restoring
        self._nans: Dict[int, float] = {}

    def persistent_load(self, pid: Any) -> Any:
        """Return the NaN of that number, or of a module: one object wherever it was one."""
        if isinstance(pid, int):
            return self._nans.setdefault(pid, float("nan"))
        try:
            return importlib.import_module(pid).nan
        except ImportError:  # ranks need no NumPy for a list of numbers
            return math.nan

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == OUT_OF_BAND:
            return self._restoring.restore
        try:
            return super().find_class(module, name)
        except ModuleNotFoundError:
            return super().find_class(other_numpy(module), name)


def out_of_band(kind: str, *state: Any) -> Any:
    """Refuse to unpickle an array, a tensor or a name of the program, which lies outside of it."""
    raise pickle.UnpicklingError(f"{kind} {state!r}: read this with distrain_nb.worker.rank.values")


OUT_OF_BAND = (__name__, out_of_band.__name__)


def _is_array(obj: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is None or type(obj) not in (numpy.ndarray, numpy.memmap):
        return False
    return not obj.dtype.hasobject and obj.dtype.isbuiltin != 2


def _is_tensor(obj: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    if type(obj) is not torch.Tensor and type(obj) is not torch.nn.Parameter:
        return False
    plain = obj.layout is torch.strided and not obj.is_quantized and obj.device.type != "meta"
    return bool(plain and not obj.is_conj() and not obj.is_neg() and not vars(obj))


def other_numpy(module: str) -> str:
    """Return the name of a module in the other NumPy: `numpy.core` of 1 is `numpy._core` of 2."""
    if module.startswith("numpy._core"):
        return module.replace("numpy._core", "numpy.core", 1)
    return module.replace("numpy.core", "numpy._core", 1)
