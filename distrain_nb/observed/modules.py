"""Which statements changed modules beside the notebook while they knew the world."""

from __future__ import annotations

import sys
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.observed.changes import identity, leaves
from distrain_nb.observed.definitions import parts
from distrain_nb.observed.frames import ANSWERS, is_installed, root_of, stored_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_Leaves = dict[str, dict[str, Any]]  # of modules, by their names
_NOTHING = object()


class ModuleChange(NamedTuple):
    """A part of a module that a statement changed: where that stands, and what it became."""

    label: str
    line: int
    column: int
    module: str
    path: str
    after: object


class Modules:
    """The modules of the user's own, before a statement that knows the world and after it."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._before: _Leaves | None = None
        self._found: list[ModuleChange] = []

    def keep(self) -> None:
        """The running statement asks for the world, or reads what knows it."""
        if self._before is None:
            self._before = {name: _leaves(module) for name, module in _own_modules()}

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """A statement has run at that place. It may also have set what was the same before, as the
        kernel's rank is 0."""
        before, self._before = self._before, None
        if before is None:
            return
        for name, module in _own_modules():
            if name in before:  # else it has just been imported, which is the file's own matter
                now, then = _leaves(module), before[name]
                changed = {p for p in {**then, **now} if then.get(p, _NOTHING) != now.get(p)}
                changed |= {p for p in _may_set(code, module, self.namespace) if p in now}
                self._found += [
                    ModuleChange(*at, name, p, now.get(p, _NOTHING)) for p in sorted(changed)
                ]

    def changes(self, modules: Collection[str]) -> Iterator[ModuleChange]:
        """Yield what statements that knew the world changed in modules, and nothing has since."""
        now = {name: _leaves(module) for name, module in _own_modules() if name in modules}
        for change in self._found:
            module = now.get(change.module)
            if module is not None and module.get(change.path, _NOTHING) == change.after:
                yield change


def _may_set(code: CodeType, module: ModuleType, namespace: Mapping[str, Any]) -> set[str]:
    """Return the plain globals of a module that code sets, itself or by the module's functions
    that it names."""
    names = vars(module)
    set_here = (
        {*stored_by(code)} if any(namespace.get(n) is module for n in code.co_names) else set()
    )
    waiting, visited = [*code.co_names], set[str]()
    while waiting:
        name = waiting.pop()
        value = names.get(name)
        if name in visited or not isinstance(value, FunctionType) or value.__globals__ is not names:
            continue
        visited.add(name)
        waiting += value.__code__.co_names
        stores = get_instructions(value.__code__)
        set_here |= {str(i.argval) for i in stores if i.opname == "STORE_GLOBAL"}
    return {name for name in set_here if isinstance(names.get(name, names), ANSWERS)}


def _own_modules() -> Iterator[tuple[str, ModuleType]]:
    for name, module in [*sys.modules.items()]:
        if type(module) is ModuleType and name != "__main__" and _is_own(vars(module)):
            yield name, module


def _is_own(names: Mapping[str, Any]) -> bool:
    if not str(names.get("__file__") or "").endswith(".py") or is_installed(names):
        return False
    if getattr(names.get("__spec__"), "_initializing", False):
        return False  # it is being imported, and asks itself
    return root_of(names) not in sys.stdlib_module_names


def _leaves(module: ModuleType) -> dict[str, Any]:
    identities: dict[str, Any] = {}
    for name, value in [*vars(module).items()]:
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        if isinstance(value, (type, FunctionType)):
            identities[name] = identity(value)
            if value.__module__ == module.__name__:
                for path, part in parts(name, value):
                    identities.update({path: identity(part), **leaves(path, part)})
        else:
            identities.update(leaves(name, value))
    return identities
