"""Scopes of Python code: which names a block binds, and which of them are bound by now.

Which modules code imports, at its top level or anywhere inside.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Mark:
    """What is bound at one point of a scope."""

    surely: frozenset[str]
    alive: bool


@dataclass
class Scope:
    """One scope during a walk.

    In modules and classes the order of execution counts: `surely` is bound on every path that
    leads here, `possibly` on some path. Functions and comprehensions have fixed `local` names.
    `alive` is false behind a `raise` or `break`.
    """

    kind: Literal["module", "class", "function", "comprehension"]
    local: frozenset[str] = frozenset()
    declared_global: set[str] = field(default_factory=set)
    surely: set[str] = field(default_factory=set)
    possibly: set[str] = field(default_factory=set)
    alive: bool = True
    hides_class: bool = True  # a comprehension in a class does not see the class's names

    def holds(self, name: str, *, innermost: bool) -> bool:
        """Return whether a read of this name ends in this scope (a module's reads are decided
        later)."""
        if self.kind == "class":
            return innermost and name in self.surely
        return name in self.local

    def leads_outside(self, name: str, *, innermost: bool) -> bool:
        """Return whether a read that does not end here goes straight to the module's names.

        So do names declared `global`, and those that a class body sets, but has not set yet.
        """
        unset = self.kind == "class" and innermost and name in self.local
        return unset or name in self.declared_global

    def bind(self, name: str) -> None:
        self.surely.add(name)
        self.possibly.add(name)

    def mark(self) -> Mark:
        return Mark(frozenset(self.surely), self.alive)

    def reset(self, mark: Mark) -> None:
        self.surely, self.alive = set(mark.surely), mark.alive

    def join(self, ends: Sequence[Mark]) -> None:
        """Go on from paths of which one was taken."""
        open_ends = [e.surely for e in ends if e.alive]
        self.alive = bool(open_ends)
        self.surely = set(frozenset.intersection(*open_ends)) if open_ends else set()

    def merge(self, start: Mark, after: Mark) -> None:
        """Go on behind a `finally` that was walked from `start`, after code that ended so."""
        added = self.surely - start.surely
        removed = start.surely - self.surely
        self.surely = (set(after.surely) | added) - removed
        self.alive = self.alive and after.alive


def function_scope(arguments: ast.arguments, body: Iterable[ast.AST]) -> Scope:
    """Return the scope of a function with these arguments and this body."""
    names, of_module = _bindings(body)
    local = (names | {parameter.arg for parameter in parameters_of(arguments)}) - of_module
    return Scope("function", local=frozenset(local), declared_global=of_module)


def parameters_of(arguments: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*every, *filter(None, [arguments.vararg, arguments.kwarg])]


def class_scope(body: Iterable[ast.AST]) -> Scope:
    """Return the scope of a class body."""
    local = frozenset(bound_names(body))
    return Scope("class", local=local, surely={"__module__", "__qualname__"})


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names that these nodes bind in the scope where they stand (stars are not resolved)."""
    return _bindings(nodes)[0]


_NAMESPACE = {"globals", "locals", "vars"}


def names_by_text(node: ast.stmt) -> set[str]:
    """Return names that a statement at the top level binds by texts that it spells out:
    `globals()["x"] = 1`, `globals().update(x=1)`."""
    if isinstance(node, ast.Assign):
        places = [t for t in node.targets if isinstance(t, ast.Subscript)]
        keys = [t.slice for t in places if _is_namespace(t.value)]
        return {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        updates = call.func.attr == "update" and _is_namespace(call.func.value)
        return {keyword.arg for keyword in call.keywords if updates and keyword.arg}
    return set()


def _is_namespace(node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) and not node.args else None
    return isinstance(func, ast.Name) and func.id in _NAMESPACE


def _bindings(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Return the names that these nodes bind, and those that they declare `global`."""
    names: set[str] = set()
    declared: dict[type[ast.AST], set[str]] = {ast.Global: set(), ast.Nonlocal: set()}
    todo = [(node, False) for node in nodes]
    while todo:
        node, nested = todo.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            declared[type(node)].update(node.names)
        names.add(bound_by(node, nested=nested))
        nested = nested or isinstance(node, _COMPREHENSIONS)
        todo += [(child, nested) for child in _of_scope(node) if child]
    return names - declared[ast.Nonlocal] - {""}, declared[ast.Global]


def _of_scope(node: ast.AST) -> Iterable[ast.AST | None]:
    """Return the parts of a node that run in its own scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        decorators = getattr(node, "decorator_list", ())
        return [*decorators, *node.args.defaults, *node.args.kw_defaults]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    if type(node).__name__ == "TypeAlias":  # type X[T] = …, Python 3.12
        return [node.name]  # type: ignore[attr-defined]
    return [node.value] if isinstance(node, ast.NamedExpr) else ast.iter_child_nodes(node)


def bound_by(node: ast.AST, *, nested: bool) -> str:
    """Return the name that a node binds, or nothing; in a comprehension only `:=` binds outside."""
    if isinstance(node, ast.Name):
        return "" if nested or isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.NamedExpr):
        return node.target.id
    if isinstance(node, ast.alias):
        return "" if node.name == "*" else node.asname or node.name.partition(".")[0]
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    return name if isinstance(name, str) else ""


@dataclass(frozen=True)
class ImportedModule:
    """One import: the module's dotted name, the names taken from it, the line. The code goes on
    without an `is_optional` one: it is in a `try`, or under a condition."""

    module: str
    names: tuple[str, ...]
    line: int
    relative: bool = False
    is_optional: bool = False

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def dotted(self) -> tuple[str, ...]:
        """Every dotted name that may be a module: `from google.cloud import storage` has two."""
        return (self.module, *[f"{self.module}.{name}" for name in self.names])


def _optional(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below a `try` with handlers, a `with suppress(…)`, or a condition other than on
    `__name__`."""
    for node in ast.walk(tree):
        guards = isinstance(node, ast.Try) and node.handlers
        asks = isinstance(node, ast.If | ast.While) and "__name__" not in ast.unparse(node.test)
        if guards or asks or (isinstance(node, ast.With) and _suppresses(node)):
            for statement in (*node.body, *getattr(node, "orelse", ())):  # type: ignore[attr-defined]
                yield from ast.walk(statement)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for statement in case.body:
                    yield from ast.walk(statement)


def _suppresses(node: ast.With) -> bool:
    calls = (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))
    return any(ast.unparse(call.func).rpartition(".")[2] == "suppress" for call in calls)


def imports_of(tree: ast.AST | Iterable[ast.AST]) -> tuple[ImportedModule, ...]:
    """Return the imports in code, those inside functions included, and `import_module("name")`."""
    nodes = [tree] if isinstance(tree, ast.AST) else [*tree]
    optional = {id(inner) for node in nodes for inner in _optional(node)}
    modules: list[ImportedModule] = []
    for node in (inner for top in nodes for inner in ast.walk(top)):
        if isinstance(node, ast.Import):
            may_fail = id(node) in optional
            modules += [
                ImportedModule(alias.name, (), node.lineno, is_optional=may_fail)
                for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(a.name for a in node.names if a.name != "*")
            is_relative, module = node.level > 0, node.module or ""
            modules.append(
                ImportedModule(module, names, node.lineno, is_relative, id(node) in optional)
            )
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name, called = node.args[0].value, ast.unparse(node.func).rpartition(".")[2]
            if isinstance(name, str) and called in ("import_module", "__import__"):
                may_fail = id(node) in optional
                modules.append(
                    ImportedModule(name, (), node.lineno, name.startswith("."), may_fail)
                )
    return tuple(modules)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def uncalled_function(body: Sequence[ast.stmt]) -> ast.FunctionDef | None:
    """Return the last function of statements that only import and define; None where one of them
    does more, or where a decorator may."""
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return functions[-1] if functions and all(map(_only_defines, body)) else None


def needs_arguments(function: ast.FunctionDef) -> bool:
    """Return whether a function can't be called without arguments."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    lacks_default = any(default is None for default in arguments.kw_defaults)
    return len(named) > len(arguments.defaults) or lacks_default


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, _DEFINITIONS):
        return not node.decorator_list
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))
