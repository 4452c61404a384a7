"""Scopes of Python code: which names a block binds, and which of them are bound by now."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NAMESPACE = {"globals", "locals", "vars"}


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
