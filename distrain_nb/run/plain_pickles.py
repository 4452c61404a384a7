"""Pickles of plain data: numbers, texts, times, containers, arrays, tensors and state dicts.

Of the names in a pickle, only constructors of such data are called. So a pickle from somebody else
can do no harm.
"""

from __future__ import annotations

import pickle
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from fractions import Fraction
from typing import BinaryIO, ClassVar

from distrain_nb.types import Value
from distrain_nb.worker.pickles import OUT_OF_BAND, Restoring, count_of, other_numpy

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
# Named, for example, as the factory of a defaultdict. Their values have their own opcodes.
_ONLY_NAMED = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
_OUT_OF_BAND_KINDS = ("array", "tensor")
_WITH_STATE = ("collections.OrderedDict", "numpy.ndarray", "uuid.UUID")
_MULTIARRAY = ("numpy._core.multiarray", "numpy.core.multiarray")
_ALIGNED = 0x80  # the flag of a dtype whose fields are placed as C's compilers place them
_OF_KEYS = (Counter, OrderedDict, defaultdict)
_MOST_IN_KEYS = 1_000_000  # of one container
_METADATA = "_metadata"  # what modules add to their state dicts: versions, by name


class NotPlain(pickle.UnpicklingError):
    """The pickle is more than plain data. The message names what the pickle calls."""


class PlainReader(pickle._Unpickler):
    """Reads plain data that `worker.pickles.Writer` wrote. Raises NotPlain.

    It is Python's own unpickler: that in C can't restrict what may be called, and what may have a
    state.
    """

    dispatch: ClassVar[dict[int, Value]] = dict(pickle._Unpickler.dispatch)
    stack: list[Value]
    metastack: list[list[Value]]
    memo: dict[int, Value]

    def __init__(self, objects: BinaryIO, restoring: Restoring) -> None:
        super().__init__(objects)
        self._restoring = restoring

    def find_class(self, module: str, name: str) -> Value:
        if (module, name) == OUT_OF_BAND:
            return self._restore
        if (module, name) == ("numpy", "ndarray"):
            return None  # only named by what `_reconstruct` is given
        if module in _MULTIARRAY and name == "_reconstruct":
            return _empty_array
        if module in _MULTIARRAY and name == "scalar":
            return _scalar
        if (module, name) == ("numpy", "dtype"):
            return _Unbuilt
        if name in _PLAIN.get(module, ()) or (module == "torch" and _is_dtype(name)):
            try:
                return super().find_class(module, name)
            except ModuleNotFoundError:
                return super().find_class(other_numpy(module), name)
        raise NotPlain(f"{module}.{name}")

    def _restore(self, kind: str, *state: Value) -> Value:
        if kind not in _OUT_OF_BAND_KINDS:
            raise NotPlain(f"{state[0] if state else kind} of the notebook")
        if kind == "array" and _has_objects(state[2]):
            raise NotPlain("an array of objects made of bytes")
        return self._restoring.restore(kind, *state)

    def _reduce(self) -> None:
        """Call the function below the top of the stack with the tuple on the top."""
        arguments = self.stack.pop()
        self.stack[-1] = _called(self.stack[-1], *arguments)

    def _new(self) -> None:
        """Make an object of the class below the top of the stack, as pickles of `UUID` do."""
        arguments = self.stack.pop()
        self.stack[-1] = _called(self.stack[-1].__new__, self.stack[-1], *arguments)

    def _set(self) -> None:
        """Set an item. Arrays and tensors are refused: they would take a key for an index."""
        if not isinstance(self.stack[-3], dict):
            raise NotPlain(f"an item of a {type(self.stack[-3]).__name__}")
        _check_keys(self.stack[-2:-1])
        pickle._Unpickler.load_setitem(self)  # type: ignore[attr-defined]

    def _set_all(self) -> None:
        if not isinstance(self.metastack[-1][-1], dict):
            raise NotPlain(f"items of a {type(self.metastack[-1][-1]).__name__}")
        _check_keys(self.stack[::2])
        pickle._Unpickler.load_setitems(self)  # type: ignore[attr-defined]

    def _add_all(self) -> None:
        _check_keys(self.stack)
        pickle._Unpickler.load_additems(self)  # type: ignore[attr-defined]

    def _freeze(self) -> None:
        _check_keys(self.stack)
        pickle._Unpickler.load_frozenset(self)  # type: ignore[attr-defined]

    def _refuse(self) -> None:
        raise NotPlain("a call with keywords, or as Python 2 wrote it")

    def _build(self) -> None:
        """Give the object below the top of the stack the state on the top."""
        obj, state = self.stack[-2:]
        if type(obj) is _Unbuilt:
            self.stack[-2:] = [obj.built(state)]
            name = next((key for key in reversed(self.memo) if self.memo[key] is obj), None)
            if name is not None:
                self.memo[name] = self.stack[-1]
            return
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        if type(obj) is OrderedDict and set(state) != {_METADATA}:
            raise NotPlain(f"{kind} with attributes")
        if kind not in _WITH_STATE:
            raise NotPlain(f"{kind} with a state")
        if kind == "numpy.ndarray":
            _check_array(*state)
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.REDUCE[0]] = _reduce
    dispatch[pickle.NEWOBJ[0]] = _new
    dispatch[pickle.SETITEM[0]] = _set
    dispatch[pickle.SETITEMS[0]] = _set_all
    dispatch[pickle.ADDITEMS[0]] = _add_all
    dispatch[pickle.FROZENSET[0]] = _freeze
    dispatch.update(dict.fromkeys((pickle.INST[0], pickle.OBJ[0], pickle.NEWOBJ_EX[0]), _refuse))


def _called(make: Value, *arguments: Value) -> Value:
    """Call a constructor. Raises NotPlain where its result may be far larger than the file."""
    kind = arguments[0] if getattr(make, "__name__", "") == "__new__" else make
    grows = any(isinstance(value, range) for value in arguments) or (
        (kind is bytearray and [*map(type, arguments)] not in ([], [bytes]))
        or (kind is Fraction and not all(map(_is_whole, arguments)))
    )
    if grows or any(kind is value for value in _ONLY_NAMED):
        raise NotPlain(f"a call of {getattr(kind, '__name__', kind)}")
    if kind in _OF_KEYS:
        for value in arguments:
            _check_keys(value if isinstance(value, list | tuple | deque) else ())
    return make(*arguments)


def _check_keys(keys: Iterable[Value]) -> None:
    """Raise NotPlain for keys that take long to hash.

    Each part is hashed as often as it occurs. A tuple of two equal tuples doubles that at every
    level.
    """
    budget = _MOST_IN_KEYS
    todo = list(keys)
    while todo:
        key = todo.pop()
        if isinstance(key, slice):
            key = (key.start, key.stop, key.step)
        if isinstance(key, tuple):
            budget -= len(key)
            if budget < 0:
                raise NotPlain(f"keys of more than {_MOST_IN_KEYS:,} parts")
            todo += key


def _is_whole(number: Value) -> bool:
    """Return whether a value may make a fraction: an integer, or a text such as `-2/3`."""
    text = type(number) is str and re.fullmatch(r"-?[0-9]+(/[0-9]+)?", number)
    return bool(text) or type(number) is int


class _Unbuilt:
    """A dtype before it gets its state.

    NumPy's own dtype can be changed while arrays use it, and it reads beyond a state that NumPy
    hasn't written. So NumPy's constructor makes the dtype from its state, and checks all of it.
    """

    def __init__(self, kind: str, *_: object) -> None:
        if not (type(kind) is str and re.fullmatch("[A-Za-z?][0-9]*", kind)):
            raise NotPlain("a dtype that NumPy doesn't write")
        self.kind = kind

    def built(self, state: Value) -> Value:
        """Return the dtype. Raises NotPlain if NumPy doesn't write states of this form."""
        import numpy as np

        _, order, subarray, names, fields, size, _, flags, *rest = state
        dtype = np.dtype(self.kind)
        metadata = rest[0] if rest else None
        if dtype.kind in "Mm" and metadata is not None:
            metadata, unit = metadata
            dtype = np.dtype(self.kind + _unit(*unit))
        if subarray is not None:
            inner, shape = subarray
            dtype = np.dtype((_checked(inner), shape))
        elif fields is not None:
            aligned = bool(flags & _ALIGNED)
            layout: Value = {**_fields(names, fields), "itemsize": size, "aligned": aligned}
            dtype = np.dtype(layout)
        else:
            dtype = dtype.newbyteorder(order)
        if dtype.hasobject and dtype != np.dtype("O"):
            raise NotPlain("a dtype of objects")
        return np.dtype(dtype, metadata=metadata) if metadata else dtype


def _unit(unit: bytes, count: int, divisor: int, _: int) -> str:
    """Return the unit of times, as a dtype's text has it."""
    if unit == b"generic":
        return ""
    return f"[{int(count)}{unit.decode('ascii')}/{int(divisor)}]"


def _fields(names: tuple[str, ...], fields: dict[str, tuple[Value, ...]]) -> dict[str, list[Value]]:
    """Return the fields of a dtype, as NumPy's constructor takes them."""
    chosen = [fields[name] for name in names]
    return {
        "names": [*names],
        "formats": [_checked(field[0]) for field in chosen],
        "offsets": [field[1] for field in chosen],
        "titles": [(*field, None)[2] for field in chosen],
    }


def _checked(dtype: Value) -> Value:
    """Return the dtype. Raises NotPlain for other values, of which NumPy would make a dtype."""
    import numpy as np

    if not isinstance(dtype, np.dtype):
        raise NotPlain("no dtype where there should be one")
    return dtype


def _has_objects(dtype: Value) -> bool:
    return bool(_checked(dtype).hasobject)


def _scalar(dtype: Value, data: Value) -> Value:
    import numpy as np

    if _has_objects(dtype):
        raise NotPlain("a scalar of objects")
    if type(data) is not bytes or len(data) != dtype.itemsize:
        raise NotPlain("a scalar of another size than its dtype's")
    return np.frombuffer(data, dtype, 1)[0]


def _check_array(version: Value, shape: Value, dtype: Value, fortran: Value, data: Value) -> None:
    """Raise NotPlain if the shape of an array doesn't fit its data.

    NumPy takes as many objects from a list as the shape says.
    """
    import numpy as np

    if not isinstance(dtype, np.dtype) or type(version) is not int or type(fortran) is not bool:
        raise NotPlain("an array that NumPy doesn't write")
    objects = dtype == np.dtype("O")
    width = 1 if objects else dtype.itemsize
    if type(data) is not (list if objects else bytes) or len(data) != count_of(shape) * width:
        raise NotPlain("an array whose shape is not that of its data")


def _empty_array(*_: object) -> Value:
    """Return an empty array, which NumPy fills from the pickle: of objects, for example."""
    import numpy as np

    return np.empty(0, "i1")


def _is_dtype(name: str) -> bool:
    import torch

    return isinstance(getattr(torch, name, None), torch.dtype)
