"""How definitions were when their statement had run, so that what has changed since is known."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

from distrain_nb.observed.changes import first_change, identity, leaves, stored
from distrain_nb.worker.fingerprint import dict_of, is_own
from distrain_nb.worker.functions import NoAttribute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_State = dict[str, dict[str, Any]]
OF_CLASSES = (
    "__doc__",
    "__annotations__",
    "__match_args__",
)  # which their statements give them, and may change
_METHODS = (FunctionType, staticmethod, classmethod, property)
_HELD = "its defaults and closure"


def parts(name: str, definition: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a definition by their paths; also those of classes inside it, and of
    its own instances among them, such as an enum's members: these are made with it."""
    waiting, seen = [(name, definition)], set()
    while waiting:
        path, owner = waiting.pop()
        seen.add(id(owner))
        text = _of_function(owner) if type(owner) is FunctionType else {}
        for attribute, value in [*vars(owner).items(), *text.items()]:
            is_given = attribute.startswith("__") and attribute.endswith("__")
            is_of_class = attribute in OF_CLASSES and value is not None
            if is_given and not (is_of_class or isinstance(value, _METHODS)):
                continue
            inner = f"{path}.{attribute}"
            yield inner, value
            if id(value) not in seen and _is_made_with(value, owner):
                waiting.append((inner, value))


def _of_function(function: FunctionType) -> dict[str, Any]:
    """Return what a function's statement gives it beside its code; Python 3.14 works annotations
    out when they are asked for."""
    early = sys.version_info < (3, 14) and function.__annotations__
    return {"__doc__": function.__doc__, **({"__annotations__": early} if early else {})}


def is_definition(value: Any) -> bool:
    """Return whether a value is a class or a function, be it one that `lru_cache` or the like has
    made."""
    return isinstance(value, (type, FunctionType)) or "__wrapped__" in dict_of(value)


def _is_made_with(value: Any, owner: Any) -> bool:
    if isinstance(value, type):
        return value.__module__ == owner.__module__ and value.__qualname__.startswith(
            f"{owner.__qualname__}."
        )
    return owner in type(value).__mro__ and hasattr(value, "__dict__")


class Originals:
    """The definitions of one notebook, as their statements left them; `filled` are those that
    statements gave something of the world, with the places of these."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._known: dict[str, tuple[ReferenceType[Any], _State]] = {}
        self.filled: dict[str, list[tuple[str, int, int]]] = {}
        self._asking: dict[str, _State] = {}
        self._given: list[tuple[ReferenceType[Any], tuple[str, int, int]]] = []

    def keep(self) -> None:
        """Keep all definitions as they were before a statement that asks for the world, or reads
        what depends on it."""
        for name in self._known.keys() - self._asking.keys():
            definition = self._still(name)
            if definition is not None:
                self._asking[name] = {**_state(name, definition), _HELD: _held(definition)}

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """Keep how a statement's definitions are after it has run, and what it gave others of the
        world, which each rank has otherwise."""
        asking, self._asking = self._asking, {}
        for name, before in asking.items():
            definition = self._still(name)
            now = before
            if definition is not None:
                now = {**_state(name, definition), _HELD: _held(definition)}
            changed = [p for p in {**before, **now} if before.get(p) != now.get(p)]
            new = {path: now.get(path, {}) for path in changed if path != _HELD}
            self._known[name][1].update(new)
            if changed:
                self.filled.setdefault(name, []).append(at)
                owners = {name: definition, **dict(parts(name, definition))}
                changed_in = {p.rpartition(".")[0] if p != _HELD else name for p in changed}
                given = (owners[path] for path in changed_in if path in owners)
                self._given += [(ref(owner), at) for owner in given if is_definition(owner)]
        own = [n for n in code.co_names if self._is_own(self.namespace.get(n))]
        for name in stored(code).intersection(own) if own else ():
            value = self.namespace[name]
            known = self._known.get(name)
            if known is None or known[0]() is not value:
                self._known[name] = ref(value), _state(name, value)
                self.filled.pop(name, None)

    def changed(
        self, name: str, definition: Any
    ) -> dict[str, tuple[Any, tuple[str, str, str]]] | None:
        """Return what has changed in a definition, by the path, with the part that tells, what that
        was and became; NoAttribute for what is gone. None where nobody saw its statement."""
        known = self._known.get(name)
        if known is None or known[0]() is not definition:
            return None
        before, now, values = known[1], _state(name, definition), dict(parts(name, definition))
        paths = [p for p in {**now, **before} if now.get(p) != before.get(p)]
        outer = [p for p in paths if not any(p.startswith(f"{other}.") for other in paths)]
        return {
            p: (values.get(p, NoAttribute), first_change(before.get(p, {}), now.get(p, {})))
            for p in outer
        }

    def given_by(self, definition: Any) -> tuple[str, int, int] | None:
        """Return the place of the statement that last gave a definition something of the world,
        whatever names stand for it since."""
        places = (at for owner, at in reversed(self._given) if owner() is definition)
        return next(places, None)

    def _still(self, name: str) -> Any:
        """Return the definition, while a name stands for the one that was seen."""
        value = self.namespace.get(name)
        return value if value is not None and self._known[name][0]() is value else None

    def _is_own(self, value: Any) -> bool:
        main = self.namespace.get("__name__")
        if isinstance(value, type):
            return is_own(value, (main,))
        return is_definition(value) and value.__module__ == main


def _held(definition: Any) -> dict[str, Any]:
    function = getattr(definition, "__wrapped__", definition)
    if type(function) is not FunctionType:
        return {}
    held = [function.__defaults__, function.__kwdefaults__]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it is empty
            continue
    return leaves("", held)


def _state(name: str, definition: Any) -> _State:
    """Return what shows changes: the parts of an attribute, or its object's identity."""
    state: _State = {}
    for path, value in parts(name, definition):
        state[path] = {**leaves(path, value)}
        state[path].setdefault(path, identity(value))
    return state
