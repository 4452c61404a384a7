"""Pickles of plain data: numbers, texts, times, containers, arrays and tensors, state dicts too.

Nothing that a pickle names is run but what makes such data, so that one that somebody else wrote
can do no harm.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from distrain_nb.worker.pickles import OUT_OF_BAND, count_of, other_numpy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.types import Value
    from distrain_nb.worker.pickles import Restoring

_PLAIN = {
    "builtins": (
        *("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list"),
        *("range", "set", "slice", "str", "tuple"),
    ),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PosixPath", "PurePosixPath"),
    "uuid": ("UUID",),
    "torch": ("Size", "device"),
}
_OUT_OF_BAND_KINDS = ("array", "tensor")
_WITH_STATE = ("collections.OrderedDict", "numpy.ndarray", "uuid.UUID")
# Flags of a dtype that make NumPy treat an element as an object or go by its own functions for it.
_OBJECTS_WAYS = 0x67
_ALIGNMENTS = frozenset([1, 2, 4, 8, 16, 32, 64])
_METADATA = "_metadata"  # what modules add to their state dicts: versions, by name


class NotPlain(pickle.UnpicklingError):
    """It is more than plain data: says what it names."""


class PlainReader(pickle._Unpickler):
    """Reads what `worker.pickles.Writer` wrote, as far as it is plain data.

    Raises NotPlain. Python's own unpickler, since that of C can't be told what may have a state:
    a dtype with a made-up one would have NumPy take bytes for the addresses of objects.
    """

    dispatch: ClassVar[dict[int, Value]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, objects: BinaryIO, restoring: Restoring) -> None:
        super().__init__(objects)
        self._restoring = restoring
        self._settled: dict[int, Value] = {}  # dtypes that arrays or other dtypes are made of

    def find_class(self, module: str, name: str) -> Value:
        if (module, name) == OUT_OF_BAND:
            return self._restore
        if (module, name) == ("numpy", "ndarray"):
            return None  # only named by what `_reconstruct` is given
        if module in _MULTIARRAY and name == "_reconstruct":
            return _empty_array
        if module in _MULTIARRAY and name == "scalar":
            return self._scalar
        if (module, name) == ("numpy", "dtype"):
            return self._dtype
        if name in _PLAIN.get(module, ()) or (module == "torch" and _is_dtype(name)):
            try:
                return super().find_class(module, name)
            except ModuleNotFoundError:
                return super().find_class(other_numpy(module), name)
        raise NotPlain(f"{module}.{name}")

    def _restore(self, kind: str, *state: Value) -> Value:
        if kind not in _OUT_OF_BAND_KINDS:
            raise NotPlain(f"{state[0] if state else kind} of the notebook")
        if kind == "array":
            if state[2].hasobject:
                raise NotPlain("an array of objects made of bytes")
            self._settle(state[2])
        return self._restoring.restore(kind, *state)

    def _dtype(self, *given: Value) -> Value:
        import numpy as np

        made = np.dtype(*given)
        for inner in _inside(made):
            self._settle(inner)
        return made

    def _scalar(self, dtype: Value, data: Value) -> Value:
        import numpy as np

        if dtype.hasobject:
            raise NotPlain("a scalar of objects")
        if type(data) is not bytes or len(data) != dtype.itemsize:
            raise NotPlain("a scalar of another size than its dtype's")
        self._settle(dtype)
        return np.frombuffer(data, dtype, 1)[0]

    def _settle(self, dtype: Value) -> None:
        """Whoever has a dtype relies on its size: from now on it gets no other state."""
        if id(dtype) not in self._settled:
            self._settled[id(dtype)] = dtype
            for inner in _inside(dtype):
                self._settle(inner)

    def _build(self) -> None:
        """Give the object below the top of the stack the state on it."""
        made, state = self.stack[-2:]  # type: ignore[attr-defined]
        kind = f"{type(made).__module__}.{type(made).__qualname__}"
        dtype = kind.startswith("numpy.dtype")
        if type(made) is OrderedDict and set(state) != {_METADATA}:
            raise NotPlain(f"{kind} with attributes")
        if not dtype and kind not in _WITH_STATE:
            raise NotPlain(f"{kind} with a state")
        if dtype and (_is_shared(made) or id(made) in self._settled):
            raise NotPlain("a dtype that others use")
        if kind == "numpy.ndarray":
            _check_array(*state)
            self._settle(state[2])
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        if dtype and not _is_sound(made):
            raise NotPlain("a dtype of objects")
        if dtype:
            self._settle(made)

    dispatch[pickle.BUILD[0]] = _build


def _check_array(version: Value, shape: Value, dtype: Value, fortran: Value, data: Value) -> None:
    """Raises NotPlain where an array in the pickle has other data than its shape says: NumPy takes
    as many objects out of a list as it wants."""
    import numpy as np

    if not isinstance(dtype, np.dtype) or type(version) is not int or type(fortran) is not bool:
        raise NotPlain("an array that NumPy doesn't write")
    objects = dtype == np.dtype("O")
    width = 1 if objects else dtype.itemsize
    if type(data) is not (list if objects else bytes) or len(data) != count_of(shape) * width:
        raise NotPlain("an array whose shape is not that of its data")


def _empty_array(*_: object) -> Value:
    """What NumPy makes first of an array that lies in the pickle, of objects for example."""
    import numpy as np

    return np.empty(0, "i1")


_MULTIARRAY = ("numpy._core.multiarray", "numpy.core.multiarray")


def _inside(dtype: Value) -> Iterator[Value]:
    """The dtypes that one is made of."""
    if dtype.subdtype is not None:
        yield dtype.subdtype[0]
    yield from (inner for inner, *_ in (dtype.fields or {}).values())


def _is_dtype(name: str) -> bool:
    import torch

    return isinstance(getattr(torch, name, None), torch.dtype)


def _is_shared(dtype: Value) -> bool:
    """Whether it is NumPy's own of that name rather than a copy."""
    import numpy as np

    return dtype is np.dtype(dtype.str)


def _is_sound(dtype: Value) -> bool:
    """Whether it is that of objects, or has none, however deep, and its fields have room in it."""
    import numpy as np

    if dtype.hasobject or dtype.kind == "O":
        return bool(dtype == np.dtype("O") and dtype.flags == np.dtype("O").flags)
    if dtype.itemsize < 0 or dtype.flags & _OBJECTS_WAYS or dtype.alignment not in _ALIGNMENTS:
        return False
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        fits = count_of(shape) * inner.itemsize == dtype.itemsize
        return fits and not inner.hasobject and _is_sound(inner)
    fields = [each[:2] for each in (dtype.fields or {}).values()]
    return all(
        type(at) is int
        and at >= 0
        and at + inner.itemsize <= dtype.itemsize
        and not inner.hasobject
        and _is_sound(inner)
        for inner, at in fields
    )
