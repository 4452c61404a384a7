"""Scopes of Python code: which names a block binds, and which of them are bound by now."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
        """Whether a read of this name ends in this scope (a module's reads are decided later)."""
        if self.kind == "class":
            return innermost and name in self.surely
        return name in self.local

    def leads_outside(self, name: str, *, innermost: bool) -> bool:
        """Whether a read that does not end here goes straight to the module's names.

        So do names declared `global`, and those that a class body sets, but has not set yet.
        """
        unset = self.kind == "class" and innermost and name in self.local
        return unset or name in self.declared_global

    def bind(self, name: str) -> None:
        self.surely.add(name)
        self.possibly.add(name)

    def unbind(self, name: str) -> None:
        self.surely.discard(name)

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


def function_scope(arguments: ast.arguments, body: Sequence[ast.AST]) -> Scope:
    """The scope of a function with these arguments and this body."""
    found = _Bindings(nested=False)
    for node in body:
        found.visit(node)
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters = {a.arg for a in [*every, arguments.vararg, arguments.kwarg] if a}
    local = (found.names | parameters) - found.declared_global - found.declared_nonlocal
    return Scope("function", local=frozenset(local), declared_global=found.declared_global)


def class_scope(body: Sequence[ast.AST]) -> Scope:
    """The scope of a class body."""
    local = frozenset(bound_names(body))
    return Scope("class", local=local, surely={"__module__", "__qualname__"})


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that these nodes bind in the scope where they stand (stars are not resolved)."""
    found = _Bindings(nested=False)
    for node in nodes:
        found.visit(node)
    return found.names - found.declared_nonlocal


class _Bindings(ast.NodeVisitor):
    def __init__(self, *, nested: bool) -> None:
        self.nested = nested  # inside a comprehension, where only `:=` binds outside
        self.names: set[str] = set()
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)) and not self.nested:
            self.names.add(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.names.add(node.target.id)
        self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.names.add(node.name)
        for part in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
            if part:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.add(node.name)
        for part in [*node.decorator_list, *node.bases]:
            self.visit(part)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default:
                self.visit(default)

    def _comprehension(self, node: ast.AST) -> None:
        outer, self.nested = self.nested, True
        self.generic_visit(node)
        self.nested = outer

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_alias(self, node: ast.alias) -> None:
        if node.name != "*":
            self.names.add(node.asname or node.name.partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def _pattern(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = _pattern  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.names.add(node.rest)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.declared_global.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared_nonlocal.update(node.names)
