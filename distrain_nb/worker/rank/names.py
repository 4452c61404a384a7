"""The names of a rank that stays: who has set each, and what it is, as a table for the notebook.

A name is the notebook's when it was sent and no cell has set it since; else it is the ranks'. A
cell sets a name by binding it, or by changing its object in place, which is seen for what is plain
and small, for tensors and for modules of PyTorch.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import types
import weakref
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from distrain_nb.worker.files.disk import replace_file, without_waiting
from distrain_nb.worker.files.session import NAMES_FILE, NamesSent
from distrain_nb.worker.rank import values

MOST_BYTES = 1 << 20  # of an array that is compared as a whole
MOST_ITEMS = 1_000
MOST_HELD = 32  # items of a list in which functions are looked for
NEVER = -1  # a place before all cells
_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_PRIVATE = {"In", "Out", "display"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class RankName:
    """What a rank has under a name.

    `sent` is the notebook's cell before which it was sent, by its place in the order of execution,
    `digest` that of the value then. `set` is the place of the ranks' cell that has set it since,
    `cell` and `line` where; NEVER and empty for none; `in_place`: it is still the same object.
    `same` is equal for equal values, where they can be compared; `reads` are global names that a
    function reads.
    """

    type: str
    shape: str = ""
    dtype: str = ""
    device: str = ""
    bytes: int = 0
    same: str = ""
    content: str = ""
    reads: Tuple[str, ...] = ()
    kernel: str = ""
    sent: int = NEVER
    digest: str = ""
    set: int = NEVER
    in_place: bool = False
    cell: str = ""
    line: int = 0


class _Mark(NamedTuple):
    """What tells the object of a name from the one before."""

    identity: int
    alive: Any  # a weak reference, the object itself where it is an atom, or None
    trace: str


class NameTable:
    """The names of this rank's `__main__`, which a session keeps."""

    def __init__(self, folder: Path, process: int, namespace: Dict[str, Any]) -> None:
        self._path = folder / NAMES_FILE.format(process)
        self._namespace = namespace
        self._stamps: Dict[str, Dict[str, Any]] = {}
        self._marks: Optional[Dict[str, _Mark]] = None  # as the cell begins

    def received(self, sent: NamesSent) -> None:
        """Note what the notebook has sent for a cell, before that begins."""
        parts = [n for n in self._stamps if _root(n) in sent.names and n not in sent.names]
        for name in parts:  # of a definition that is made anew, as its text gives it
            del self._stamps[name]
        for name, digest in sent.names.items():
            self._stamps[name] = {"kernel": sent.kernel, "sent": sent.at, "digest": digest}
        for name in sent.keeps:
            stamp = self._stamps.get(name, {})
            self._stamps[name] = {**stamp, "kernel": sent.kernel, "set": sent.at}
        self._marks = {name: _mark(value) for name, value in self._entries()}

    def cell_ended(self, sent: NamesSent, label: str, lines: Mapping[str, int]) -> None:
        """Note what the cell has set; `lines` are where it binds names."""
        marks, self._marks = self._marks, None
        for name, value in self._entries() if marks is not None else ():
            before = marks.get(name) if marks else None
            if before is None or not _is_same(before, value):
                self._stamps[name] = {
                    **{key: v for key, v in self._stamps.get(name, {}).items() if key != "set"},
                    "kernel": sent.kernel,
                    "set": sent.at,
                    "in_place": before is not None and before.identity == id(value),
                    "cell": label,
                    "line": lines.get(name, 0),
                }
        self.write()

    def write(self) -> None:
        """Leave the table for the notebook. On a full disk the one before stays."""
        table = {
            name: asdict(RankName(**{**described(value), **self._stamps.get(name, {})}))
            for name, value in self._entries()
        }
        # Attributes, weights and settings that were sent are no names of the ranks.
        for name in self._stamps.keys() - table.keys():
            if not name.isidentifier():
                table[name] = asdict(RankName("", **self._stamps[name]))
        with without_waiting(), suppress(OSError):
            replace_file(self._path, json.dumps(table).encode())

    def _entries(self) -> Iterator[Tuple[str, Any]]:
        return (
            (name, value)
            for name, value in list(self._namespace.items())
            if name not in _PRIVATE
            and not (name.startswith("__") and name.endswith("__"))
            and not (type(value) is types.FunctionType and value.__module__ == values.__name__)
        )


def _root(name: str) -> str:
    """Return the name of which `CFG.lr` or `nets[0].state_dict()` is a part; else nothing."""
    root = re.match(r"(\w+)[.\[]", name)
    return root.group(1) if root else ""


def bound_lines(text: str) -> Dict[str, int]:
    """Return the names that a text binds outside functions, with the last line that does."""
    lines: Dict[str, int] = {}
    for node in _outside_functions(ast.parse(text).body):
        for name in _bound(node):
            lines[name] = max(lines.get(name, 0), getattr(node, "lineno", 0))
    return lines


def _outside_functions(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _outside_functions(ast.iter_child_nodes(node))


def _bound(node: ast.AST) -> List[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, _SCOPES[:3]):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return []


# -- what an object is ----------------------------------------------------------------------------


def described(value: Any) -> Dict[str, Any]:
    """Return the fields of `RankName` that say what a value is."""
    kind = type(value)
    fields: Dict[str, Any] = {"type": kind.__name__, "same": same_text(value)}
    reads = set(_reads(value))
    if reads:
        fields["reads"] = tuple(sorted(reads))
    if _is_module_of_torch(value):
        tensors = [*value.parameters(), *value.buffers()]
        fields["bytes"] = sum(map(_bytes, tensors))
        fields["dtype"] = _joined(tensor.dtype for tensor in tensors)
        fields["device"] = _joined(tensor.device for tensor in tensors)
    elif hasattr(kind, "shape") and hasattr(kind, "dtype"):
        try:
            fields["shape"] = "×".join(str(int(length)) for length in value.shape)
            fields["dtype"] = str(value.dtype).replace("torch.", "")
            fields["device"] = str(getattr(value, "device", ""))
            fields["bytes"] = _bytes(value)
            fields["content"] = _content(value)
        except Exception:  # a proxy that has no shape yet
            pass
    elif isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)):
        fields["shape"] = str(len(value))
    return fields


def _content(value: Any) -> str:
    """Return a checksum of a tensor's or array's elements, of a large one of some; empty for what
    is on another device, where to read it would wait for its work."""
    if str(getattr(value, "device", "cpu")) != "cpu":
        return ""
    if hasattr(value, "detach"):
        flat = value.detach().reshape(-1) if value.is_contiguous() else None
        if flat is None or str(value.layout) != "torch.strided" or "bfloat16" in str(value.dtype):
            return ""
        value = flat[:: max(1, value.nbytes // MOST_BYTES)].numpy()
    return str(_checksum(value))


def _joined(parts: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(str(part).replace("torch.", "") for part in parts))


def _bytes(value: Any) -> int:
    size = getattr(value, "nbytes", None)
    return size if isinstance(size, int) else 0


def _reads(value: Any, depth: int = 2) -> Iterator[str]:
    """Yield the global names that a function reads, those of a class and its objects, and those
    that a partial or a short list or dict holds."""
    if isinstance(value, types.FunctionType):
        yield from _global_names(value.__code__)
    elif isinstance(value, type) and depth and value.__module__ == "__main__":
        yield from (cls.__name__ for cls in value.__mro__ if cls.__module__ == "__main__")
        for part in [part for cls in value.__mro__[:-1] for part in vars(cls).values()]:
            yield from _reads(getattr(part, "__func__", getattr(part, "fget", part)), 0)
    elif type(value).__module__ == "__main__":
        yield from _reads(type(value), depth)
    elif depth and isinstance(value, functools.partial):
        yield from _reads(value.func, depth - 1)
        yield getattr(value.func, "__name__", "")
    elif depth and type(value) in (list, tuple, dict) and len(value) <= MOST_HELD:
        for part in value.values() if type(value) is dict else value:
            yield from _reads(part, depth - 1)


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _is_module_of_torch(value: Any) -> bool:
    return any(k.__module__ == "torch.nn.modules.module" for k in type(value).__mro__[:-1])


def same_text(value: Any) -> str:
    """Return a text that equal values have in every process, for modules, what is imported, and
    what is plain and small; else empty."""
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        home, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{home}:{name}" if home != "__main__" and "<" not in name else ""
    return repr(value) if is_small(value) else ""


def is_small(value: Any, depth: int = 3) -> bool:
    """Return whether a value is plain, and small enough to be compared by its text."""
    if type(value) in _ATOMS:
        return not isinstance(value, (str, bytes)) or len(value) <= MOST_ITEMS
    if not depth or type(value) not in (list, tuple, dict) or len(value) > MOST_ITEMS:
        return False
    items = [*value.keys(), *value.values()] if type(value) is dict else value
    return all(is_small(item, depth - 1) for item in items)


def _mark(value: Any) -> _Mark:
    if type(value) in _ATOMS:
        return _Mark(id(value), value, "")
    try:
        reference: Any = weakref.ref(value)
    except TypeError:
        reference = None
    return _Mark(id(value), reference, trace(value))


def _is_same(before: _Mark, value: Any) -> bool:
    """Return whether a name still has its object, unchanged. A number of an object that has gone
    may be another's, so a weak reference must still lead to it."""
    if type(value) in _ATOMS:
        return type(before.alive) is type(value) and repr(before.alive) == repr(value)
    if before.identity != id(value) or before.trace != trace(value):
        return False
    return not isinstance(before.alive, weakref.ReferenceType) or before.alive() is value


def trace(value: Any) -> str:
    """Return a text that changes when a value is changed in place, as far as that is cheap."""
    try:
        if is_small(value):
            return repr(value)
        if _is_module_of_torch(value):
            tensors = [*value.parameters(), *value.buffers()]
            return str(hash(tuple((id(t), t._version) for t in tensors)))
        if hasattr(type(value), "_version") and hasattr(type(value), "data_ptr"):
            return f"{value._version}"
        if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
            return str(_checksum(value))
        if isinstance(value, (list, dict, set)):
            return str(len(value))
    except Exception:  # a proxy, an object half made
        pass
    return ""


def _checksum(array: Any) -> Optional[int]:
    if array.dtype.hasobject:
        return None
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
    step = max(1, array.nbytes // MOST_BYTES)
    return zlib.adler32(flat[::step].tobytes())
