"""Pickles of plain data: numbers, texts, times, containers, arrays and tensors, state dicts too.

Nothing that a pickle names is run but what makes such data, so that one that somebody else wrote
can do no harm.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from distrain_nb.worker.pickles import OUT_OF_BAND, other_numpy

if TYPE_CHECKING:
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
    "numpy": ("dtype",),
    "torch": ("Size", "device"),
}
_OUT_OF_BAND_KINDS = ("array", "tensor")
_WITH_STATE = ("collections.OrderedDict", "numpy.ndarray", "uuid.UUID")
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

    def find_class(self, module: str, name: str) -> Value:
        if (module, name) == OUT_OF_BAND:
            return self._restore
        if (module, name) == ("numpy", "ndarray"):
            return None  # only named by what `_reconstruct` is given
        if module in _MULTIARRAY and name in _NUMPYS_OWN:
            return _NUMPYS_OWN[name]
        if name in _PLAIN.get(module, ()) or (module == "torch" and _is_dtype(name)):
            try:
                return super().find_class(module, name)
            except ModuleNotFoundError:
                return super().find_class(other_numpy(module), name)
        raise NotPlain(f"{module}.{name}")

    def _restore(self, kind: str, *state: Value) -> Value:
        if kind not in _OUT_OF_BAND_KINDS:
            raise NotPlain(f"{state[0] if state else kind} of the notebook")
        if kind == "array" and state[2].hasobject:
            raise NotPlain("an array of objects made of bytes")
        return self._restoring.restore(kind, *state)

    def _build(self) -> None:
        """Give the object below the top of the stack the state on it."""
        made, state = self.stack[-2:]  # type: ignore[attr-defined]
        kind = f"{type(made).__module__}.{type(made).__qualname__}"
        dtype = kind.startswith("numpy.dtype")
        if type(made) is OrderedDict and set(state) != {_METADATA}:
            raise NotPlain(f"{kind} with attributes")
        if not dtype and kind not in _WITH_STATE:
            raise NotPlain(f"{kind} with a state")
        if dtype and _is_shared(made):
            raise NotPlain("a dtype that others use")
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        if dtype and not _is_sound(made):
            raise NotPlain("a dtype of objects")

    dispatch[pickle.BUILD[0]] = _build


def _empty_array(*_: object) -> Value:
    """What NumPy makes first of an array that lies in the pickle, of objects for example."""
    import numpy as np

    return np.empty(0, "i1")


def _scalar(dtype: Value, data: Value) -> Value:
    import numpy as np

    if dtype.hasobject:
        raise NotPlain("a scalar of objects")
    return np.frombuffer(data, dtype, 1)[0]


_MULTIARRAY = ("numpy._core.multiarray", "numpy.core.multiarray")
_NUMPYS_OWN = {"_reconstruct": _empty_array, "scalar": _scalar}


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
    if dtype.subdtype is not None:
        return not dtype.subdtype[0].hasobject and _is_sound(dtype.subdtype[0])
    fields = [dtype.fields[name][:2] for name in dtype.names or ()]
    return all(
        at >= 0
        and at + inner.itemsize <= dtype.itemsize
        and not inner.hasobject
        and _is_sound(inner)
        for inner, at in fields
    )
