"""Which statements changed objects that know the world, seen when each statement has run.

Such an object is made again in every rank, and what has changed it since must be done again too.
"""

from __future__ import annotations

from collections import deque
from dis import get_instructions
from enum import Enum
from itertools import islice
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.frames import is_package, run_by
from distrain_nb.observed.objects import array_of, attributes_of, is_model, place_in
from distrain_nb.observed.touched import touched
from distrain_nb.worker.fingerprint import BY_USE, LIVE, OF_THE_WORLD, key_of, text_of
from distrain_nb.worker.plain import is_plain_object, plain_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_PLAIN = (bool, int, float, complex, str, bytes, type(None), Enum)
_NO_PARTS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, CodeType)
_MOST_PARTS, _MOST_ITEMS, _DEEPEST = 1000, 100, 7
_FEW = 3  # objects are compared in less time than it takes to see where a statement leads
_MOST_NAMES = 10  # whose parts are looked at before each statement: a tenth of a millisecond each
_SHOWS = {"PRINT_EXPR", "INTRINSIC_PRINT"}  # from Python 3.12 on
_STORES = {"STORE_NAME", "STORE_GLOBAL"}
_LEFT_OUT = BY_USE | OF_THE_WORLD
_NOTHING = object()
_SETTINGS = {"argparse", "types", "builtins", "collections"}  # whose objects hold what users put in


class PartChange(NamedTuple):
    """A part of an object that a statement changed: where that stands, what it was and became. The
    line is -1 where only the cell is known."""

    label: str
    line: int
    column: int
    path: str
    before: str
    after: str


class _Followed(NamedTuple):
    """An object that knows the world, its parts by their paths, and the identities of what holds
    them; none where there are more parts than are looked at."""

    obj: object
    parts: dict[str, Any]
    ids: set[int]


class Changes:
    """Follows the objects of one notebook that know the world, and what is made of these;
    `replaced` are names that a function bound anew, with the place of the statement."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._objects: dict[str, _Followed] = {}
        self._skipped = False  # whether some were not looked at since the cell began
        self._found: dict[str, list[PartChange]] = {}
        self.replaced: dict[str, tuple[str, int, int]] = {}

    def of(self, name: str) -> Collection[PartChange]:
        """Return what changed a name's object since the name was bound to it."""
        return self._found.get(name, ())

    def look(self, code: CodeType, at: tuple[str, int, int], asked: bool) -> None:
        """Look what the statement at that place changed: its cell, line and column."""
        if not asked and not self._objects and not self.replaced:
            return
        reads = asked or bool(self.read_by(code))
        led_to = touched(code, self.namespace) if len(self._objects) > _FEW else None
        for name, followed in [*self._objects.items()]:
            if self.namespace.get(name) is not followed.obj:
                del self._objects[name]
                self._found.pop(name, None)
                self.replaced[name] = at
            elif led_to is not None and followed.ids and followed.ids.isdisjoint(led_to):
                self._skipped = True
            else:
                self._compare(name, followed, at)
        for name in self.replaced.keys() & stored(code) if self.replaced else ():
            del self.replaced[name]
        if reads:
            self.follow(stored(code))

    def end(self, label: str) -> None:
        """Look at all once more when a cell has run: hooks, and what packages keep, change objects
        to which no statement leads. Such a change has the cell alone for its place."""
        if self._skipped:
            self._skipped = False
            for name, followed in [*self._objects.items()]:
                if self.namespace.get(name) is followed.obj:
                    self._compare(name, followed, (label, -1, -1))

    @property
    def names(self) -> Collection[str]:
        """The names of what is followed, and of what was replaced."""
        return {**self._objects, **self.replaced} if self.replaced else self._objects

    def holds(self) -> Iterator[int]:
        """Yield the identities of the objects that are followed, once for each reference."""
        yield from (id(followed.obj) for followed in self._objects.values())

    def read_by(self, code: CodeType) -> set[str]:
        """Return the names of what knows the world that a statement reads while it runs."""
        if not self._objects:
            return set()
        return {n for _, read in run_by(code, self.namespace) for n in read} & self._objects.keys()

    def plain_states(self, code: CodeType) -> dict[str, dict[str, str]]:
        """Return the parts of what a statement names that knows nothing of the world yet."""
        names = (n for inner, _ in run_by(code, self.namespace) for n in inner.co_names)
        unknown = (n for n in dict.fromkeys(names) if n not in self._objects)
        values = {n: self.namespace[n] for n in unknown if n in self.namespace}
        plain = (n for n, v in values.items() if is_plain_object(v) and not is_model(v))
        return {n: plain_parts(n, values[n]) for n in islice(plain, _MOST_NAMES)}

    def follow(self, names: Collection[str]) -> None:
        """Follow what these names stand for from now on."""
        for name in names:
            if name in self.namespace and name not in self._objects:
                obj = self.namespace[name]
                if not isinstance(obj, _NO_PARTS) or self._is_own(obj):
                    self._objects[name] = _followed(name, obj)

    def follow_shown(self, code: CodeType) -> None:
        """Follow what IPython keeps of all results, if a statement has shown one."""
        shows = any(i.opname in _SHOWS or i.argval in _SHOWS for i in get_instructions(code))
        if shows and "Out" in self.namespace:
            self._objects["Out"] = _Followed(self.namespace["Out"], {}, set())  # too much

    def _is_own(self, definition: object) -> bool:
        """Return whether it is the notebook's: what packages ask while they are imported is their
        own matter."""
        return getattr(definition, "__module__", None) == self.namespace.get("__name__")

    def _compare(self, name: str, before: _Followed, at: tuple[str, int, int]) -> None:
        if not before.parts:
            return
        now = self._objects[name] = _followed(name, before.obj)
        if before.parts != now.parts:
            change = PartChange(*at, *first_change(before.parts, now.parts))  # which tells enough
            self._found.setdefault(name, []).append(change)


def _followed(name: str, obj: object) -> _Followed:
    ids: set[int] = set()
    parts = leaves(name, obj, ids)
    return _Followed(obj, parts, ids if len(parts) < _MOST_PARTS else set())


def first_change(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, str, str]:
    """Return the path of the first part that differs, what it was and became."""
    paths = (p for p in {**before, **now} if before.get(p, _NOTHING) != now.get(p, _NOTHING))
    path = next(paths, "")
    return path, said(before.get(path, _NOTHING)), said(now.get(path, _NOTHING))


def identity(part: object) -> tuple[str, int]:
    """Return which of its kind an object is."""
    return f"a {type(part).__name__}", id(part)


def said(value: object) -> str:
    if isinstance(value, tuple):
        return str(value[0])
    return "missing" if value is _NOTHING else text_of(value) or type(value).__name__


def stored(code: CodeType) -> set[str]:
    """Return the names that a statement binds."""
    return {i.argval for i in get_instructions(code) if i.opname in _STORES}


def leaves(name: str, obj: object, visited: set[int] | None = None) -> dict[str, Any]:
    """Return the plain parts of an object by their paths; of arrays and tensors what tells of a
    change. `visited` takes the identities of what holds them."""
    found: dict[str, Any] = {}
    visited = set() if visited is None else visited
    waiting = [(name, obj, 0)]
    while waiting and len(found) < _MOST_PARTS:
        path, part, depth = waiting.pop()
        if isinstance(part, _PLAIN):
            found[path] = part if part == part else "nan"
        elif isinstance(part, _NO_PARTS):
            found[path] = identity(part)
        elif depth < _DEEPEST and id(part) not in visited:
            visited.add(id(part))
            try:
                waiting += [(*inner, depth + 1) for inner in _inside(path, part, found)]
            except Exception:  # its own code would not be looked at
                continue
    return found


def _inside(path: str, obj: Any, found: dict[str, Any]) -> Iterator[tuple[str, object]]:
    cls = type(obj)
    if cls.__module__.partition(".")[0] in LIVE or hasattr(cls, "_shared_state"):
        return  # what belongs to the process
    place = place_in(obj)
    if place is not None:
        found[path] = *identity(obj), place
    elif isinstance(obj, (list, tuple, deque)):
        found[f"len({path})"] = len(obj)
        yield from ((f"{path}[{n}]", part) for n, part in enumerate(islice(obj, _MOST_ITEMS)))
    elif isinstance(obj, (set, frozenset)):
        found[path] = frozenset(p for p in obj if isinstance(p, _PLAIN))
    elif isinstance(obj, (dict, MappingProxyType)):
        items = [(key_of(k), v) for k, v in islice(obj.items(), _MOST_ITEMS)]
        found[f"len({path})"] = len(obj)
        yield from ((f"{path}[{key}]", part) for key, part in items if key)
    elif cls.__module__.startswith("torch.nn.parameter"):
        return  # weights travel
    else:
        array = array_of(obj)
        if array is not None:
            found[path] = *identity(obj), array
    yield from ((f"{path}.{name}", part) for name, part in _attributes(obj, cls))


def _attributes(obj: Any, cls: type) -> Iterator[tuple[str, object]]:
    inside = attributes_of(obj)
    yield from (inside.get("_modules") or {}).items()  # of a model, as one writes it
    private = cls.__module__ not in _SETTINGS and is_package(cls.__module__)
    for name, part in inside.items():
        is_weights = "_modules" in inside and name in ("_parameters", "_buffers", "_modules")
        if not (is_weights or (private and (name.startswith("_") or name in _LEFT_OUT))):
            yield name, part
