"""What code seems to ask about the rank, the world and the machine that it runs on.

Calls are followed through functions and classes of the notebook and of modules beside it; names
are looked up among the objects that they stand for at present, so that no alias hides a call.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal

from distrain_nb.observed.questions import is_launchers
from distrain_nb.program.notebook.history import first_line
from distrain_nb.program.notebook.process_bound import (
    is_bound,
    is_bound_type,
    name_of,
    reads_device,
    reads_world,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.notebook.history import Statement
    from distrain_nb.program.notebook.own_modules import OwnModule, OwnModules

_NOTHING = object()
_MADE_WITH = ("__init__", "__new__", "__post_init__")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Reading:
    """What code asks, and where: the call or variable as it is written, the cell and line.

    `likely`: the code only has a launcher's variable as a text.
    """

    kind: Literal["world", "device"]
    what: str
    where: str
    likely: bool = False


@dataclass(frozen=True)
class Dependencies:
    """What code asks itself, the names that it reads, the functions and classes that it calls."""

    readings: tuple[Reading, ...] = ()
    names: tuple[tuple[OwnModule, str], ...] = ()
    calls: tuple[Any, ...] = ()

    def __add__(self, other: Dependencies) -> Dependencies:
        readings, names = self.readings + other.readings, self.names + other.names
        return Dependencies(readings, names, self.calls + other.calls)


@dataclass(frozen=True)
class Unloaded:
    """Something of a module that is not loaded here, by its dotted name."""

    name: str


@dataclass
class WorldReads:
    """Looks at code, each piece once."""

    modules: OwnModules
    _statements: dict[Statement, Dependencies] = field(default_factory=dict)
    _targets: dict[str, Dependencies] = field(default_factory=dict)

    def of_statement(self, statement: Statement, module: OwnModule) -> Dependencies:
        """What a statement asks and reads while it runs."""
        if statement not in self._statements:
            code = CodeUnit(self.modules, module, statement.label, {})
            self._statements[statement] = code.dependencies(statement.node)
        return self._statements[statement]

    def of_call(self, target: Any) -> Dependencies:
        """What a call of the user's own function or class asks and reads."""
        name = name_of(target)
        if name not in self._targets:
            self._targets[name] = self._inside(target)
        return self._targets[name]

    def _inside(self, target: Any) -> Dependencies:
        module = self.modules.of(getattr(target, "__module__", None))
        found = module.definition(getattr(target, "__qualname__", "")) if module else None
        if module is None or found is None:
            return Dependencies()
        statement, node = found
        if not isinstance(target, type):
            return self._of_part(node, module, statement.label)
        total = Dependencies(calls=target.__mro__[1:-1])
        for part in _made_with(node):
            total += self._of_part(part, module, statement.label)
        return total

    def _of_part(self, node: ast.AST, module: OwnModule, label: str) -> Dependencies:
        return CodeUnit(self.modules, module, label, local_names(node)).dependencies(node)


def asked_by_call(target: Any) -> Literal["world", "device"] | None:
    """What a call of an installed package's function or class depends on."""
    name = target.name if isinstance(target, Unloaded) else name_of(target)
    if reads_world(name) or (isinstance(target, type) and is_bound_type(target)):
        return "world"
    return "device" if reads_device(name) else None


@dataclass
class CodeUnit:
    """One piece of code: its module, its cell, and its local names (modules that it imports)."""

    modules: OwnModules
    module: OwnModule
    label: str
    local: dict[str, Any]

    def dependencies(self, tree: ast.AST) -> Dependencies:
        line = first_line(tree) if isinstance(tree, ast.stmt) else 0
        total = Dependencies()
        for node in ast.walk(tree):
            line = getattr(node, "lineno", line)
            where = f"{self.label}, line {line}"
            if isinstance(node, ast.Constant) and is_launchers(str(node.value)):
                what = f"os.environ[{node.value!r}]"
                total += Dependencies((Reading("world", what, where, likely=True),))
            elif isinstance(node, ast.Call):
                total += self._called(node, where)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                total += self._mentioned(node, where)
        return total

    def _called(self, node: ast.Call, where: str) -> Dependencies:
        target = self.resolve(node.func)
        while isinstance(target, partial):
            target = target.func
        kind = asked_by_call(target)
        if kind:
            return Dependencies((Reading(kind, f"{ast.unparse(node.func)}()", where),))
        own = isinstance(target, (type, FunctionType)) and self.modules.of(target.__module__)
        return Dependencies(calls=(target,)) if own else Dependencies()

    def _mentioned(self, node: ast.Name | ast.Attribute, where: str) -> Dependencies:
        if isinstance(node, ast.Name):
            known = node.id not in self.local and node.id in self.module.namespace
            return Dependencies(names=((self.module, node.id),)) if known else Dependencies()
        base = self.resolve(node.value)
        found = self.resolve(node)
        if is_bound(found):  # MPI.COMM_WORLD
            return Dependencies((Reading("world", ast.unparse(node), where),))
        if isinstance(base, FunctionType) and is_launchers(node.attr.upper()):
            # Lightning's `rank_zero_only.rank`, which was read as Lightning was imported
            return Dependencies((Reading("world", ast.unparse(node), where),))
        if isinstance(base, ModuleType):
            module = self.modules.of(base.__name__)
            return Dependencies(names=((module, node.attr),)) if module else Dependencies()
        return Dependencies(calls=(found.fget,)) if isinstance(found, property) else Dependencies()

    def resolve(self, node: ast.AST) -> Any:
        """The object that a dotted name stands for at present; nothing is run to find it."""
        if isinstance(node, ast.Name):
            if node.id in self.local:
                return self.local[node.id]
            return self.module.namespace.get(node.id, getattr(builtins, node.id, _NOTHING))
        if not isinstance(node, ast.Attribute):
            return _NOTHING
        base = self.resolve(node.value)
        if isinstance(base, Unloaded):
            return Unloaded(f"{base.name}.{node.attr}")
        if isinstance(base, ModuleType):
            inside = sys.modules.get(f"{base.__name__}.{node.attr}", _NOTHING)
            found = vars(base).get(node.attr, inside)
            return Unloaded(f"{base.__name__}.{node.attr}") if found is _NOTHING else found
        return self._member(base, node.attr)

    def _member(self, base: Any, name: str) -> Any:
        cls = base if isinstance(base, type) else type(base)
        if base is _NOTHING or is_bound(base):
            return _NOTHING
        found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), _NOTHING)
        return getattr(found, "__func__", found)


def local_names(node: ast.AST) -> dict[str, Any]:
    """What names stand for inside a function: modules that it imports; others are unknown."""
    found: dict[str, Any] = {}
    declared: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            found[inner.arg] = _NOTHING
        elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            found[inner.id] = _NOTHING
        elif isinstance(inner, ast.Global):
            declared.update(inner.names)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            for alias in inner.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = sys.modules.get(name, Unloaded(name))
        elif isinstance(inner, ast.ImportFrom) and not inner.level:
            for alias in inner.names:
                found[alias.asname or alias.name] = _from(inner.module or "", alias.name)
    return {name: value for name, value in found.items() if name not in declared}


def _from(module: str, name: str) -> Any:
    inside = sys.modules.get(f"{module}.{name}", Unloaded(f"{module}.{name}"))
    return vars(sys.modules[module]).get(name, inside) if module in sys.modules else inside


def _made_with(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a class that run when an object is made."""
    methods = {n.name: n for n in getattr(node, "body", ()) if isinstance(n, _FUNCTIONS[:2])}
    waiting = [name for name in _MADE_WITH if name in methods]
    seen = set(waiting)
    while waiting:
        method = methods[waiting.pop()]
        yield method
        called = {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)}
        new = sorted(called & methods.keys() - seen)
        waiting += new
        seen.update(new)
    yield from (n for n in getattr(node, "body", ()) if n not in methods.values())
