"""Which names a piece of top-level code needs from outside, and which it binds.

The walk follows the order of execution: a name counts as needed where it is read before the code
has bound it on every path. Bodies of functions run later, so what they read counts as needed
unless the code itself binds it before the function can be called.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from distrain_nb.program.python.reads import ByText, ExpressionWalker, Read, Use
from distrain_nb.program.python.scopes import (
    Scope,
    bound_names,
    class_scope,
    function_scope,
    parameters_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_CATCH_NAME_ERRORS = {"NameError", "Exception", "BaseException"}
_LATE_ANNOTATIONS = sys.version_info >= (3, 14)


@dataclass(frozen=True)
class Names:
    """What code needs, by name, in order of first use; what it binds at its top level, `surely` on
    every path; and where it reads names that it makes at run time."""

    needs: Mapping[str, Use]
    binds: frozenset[str]
    by_text: tuple[ByText, ...] = ()
    surely: frozenset[str] = frozenset()


def names_of(
    body: Sequence[ast.stmt],
    *,
    late_annotations: bool = False,
    star: Callable[[str], Iterable[str] | None] = lambda _: (),
    bodies: Mapping[str, Sequence[Read]] = MappingProxyType({}),
) -> Names:
    """Analyse top-level statements.

    `star` tells which names `from module import *` binds, None where nobody knows. `bodies` are
    what functions read that are defined before: it counts as read where they may be called.
    """
    late = late_annotations or _LATE_ANNOTATIONS or "annotations" in futures_in(body)
    walker = _Walker(late_annotations=late, star=star)
    walker.bodies.update((name, list(reads)) for name, reads in bodies.items())
    walker.each(body)
    return walker.result()


def futures_in(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """Return the features that `from __future__` imports name, sorted."""
    imports = [n for n in nodes if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    return tuple(sorted({alias.name for node in imports for alias in node.names}))


@dataclass
class _Walker(ExpressionWalker, ast.NodeVisitor):
    late_annotations: bool = False
    star: Callable[[str], Iterable[str] | None] = lambda _: ()

    def result(self) -> Names:
        module = self.scopes[0]
        for read in self.later:
            if read.name not in module.possibly:
                sure = read.certain and not self.guarded and read.name not in self.bound_inside
                self.need(read, at_once=False, certain=sure)
        binds = frozenset(module.possibly | self.bound_inside)
        return Names(self.needs, binds, tuple(self.by_text), frozenset(module.surely))

    # -- statements ---------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self.alternatives(lambda: self.each(node.body), lambda: self.each(node.orelse))

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._loop(node, [node.target])

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._loop(node, [])

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, targets: list[ast.expr]) -> None:
        if self.scopes[-1].kind != "function":
            self.scopes[-1].possibly |= bound_names(node.body)  # by an earlier round
        self.alternatives(lambda: self.each([*targets, *node.body]), lambda: None)
        self.each(node.orelse)

    def visit_Try(self, node: ast.Try) -> None:
        scope = self.scopes[-1]
        start = scope.mark()
        caught = [n for h in node.handlers for n in (ast.walk(h.type) if h.type else [None])]
        catches = any(n is None or getattr(n, "id", "") in _CATCH_NAME_ERRORS for n in caught)

        def normal() -> None:
            self.guarded += catches
            self.each(node.body)
            self.guarded -= catches
            self.each(node.orelse)

        handlers = [lambda h=h: self.visit(h) for h in node.handlers]
        self.alternatives(normal, *handlers)
        after = scope.mark()
        scope.reset(start)
        self.each(node.finalbody)
        scope.merge(start, after)

    visit_TryStar = visit_Try  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type:
            self.visit(node.type)
        if node.name:
            self.bind(node.name)
        self.each(node.body)
        if node.name:
            self.scopes[-1].surely.discard(node.name)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        last = node.cases[-1]
        catches_all = isinstance(last.pattern, ast.MatchAs) and not last.pattern.pattern
        cases = [lambda c=c: self.visit(c) for c in node.cases]
        self.alternatives(*cases, *([] if catches_all and not last.guard else [lambda: None]))

    def visit_match_case(self, node: ast.match_case) -> None:
        self.visit(node.pattern)
        self.bind(*bound_names([node.pattern]))
        self.each([*filter(None, [node.guard]), *node.body])

    def _leave(self, node: ast.AST) -> None:
        self.generic_visit(node)
        if self.scopes[-1].kind != "function":
            self.scopes[-1].alive = False

    visit_Raise = visit_Break = visit_Continue = _leave  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> None:
        start = len(self.later)
        if not isinstance(node.value, ast.Lambda):
            self.each([node.value, *node.targets])
            return
        self.function(node.value)
        self.each(node.targets)
        self.bodies.update(dict.fromkeys(bound_names([node]), self.later[start:]))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read(node.target.id, node.target.lineno)
        self.visit(node.value)
        self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
        if self.scopes[-1].kind != "function":
            self._annotation(node.annotation)
        if node.value or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_Delete(self, node: ast.Delete) -> None:
        scope = self.scopes[-1]
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.visit(target)
                continue
            if scope.kind == "module" and scope.alive and target.id not in scope.surely:
                read, is_new = Read(target.id, target.lineno), target.id not in scope.possibly
                self.need(read, at_once=True, certain=is_new, deleted=True)
            elif target.id in scope.declared_global:
                self.read(target.id, target.lineno)
            scope.surely.discard(target.id)

    def visit_Import(self, node: ast.Import) -> None:
        self.bind(*bound_names([node]))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        stars = any(a.name == "*" for a in node.names)
        names = self.star(node.module or "") if stars else bound_names([node])
        self.guarded += names is None
        self.bind(*(names or ()))

    def visit_Global(self, node: ast.Global) -> None:
        self.scopes[-1].declared_global.update(node.names)

    def visit_TypeAlias(self, node: ast.AST) -> None:  # type X = …, Python 3.12
        self.later.extend(
            Read(n.id, n.lineno)
            for n in ast.walk(node.value)  # type: ignore[attr-defined]
            if isinstance(n, ast.Name)
        )
        self.bind(node.name.id)  # type: ignore[attr-defined]

    # -- definitions --------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        start = len(self.later)
        self.each(node.decorator_list)
        self.defaults(node.args)
        with self.inside(_type_parameters(node)):
            annotations = [parameter.annotation for parameter in parameters_of(node.args)]
            for annotation in filter(None, [*annotations, node.returns]):
                self._annotation(annotation)
            with self.inside(function_scope(node.args, node.body)):
                self.each(node.body)
        self.bind(node.name)
        self.bodies[node.name] = self.later[start:]

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        start = len(self.later)
        self.each(node.decorator_list)
        with self.inside(_type_parameters(node)):
            self.each([*node.bases, *node.keywords])
            with self.inside(class_scope(node.body)):
                self.each(node.body)
        self.bind(node.name)
        self.bodies[node.name] = self.later[start:]

    def _annotation(self, node: ast.expr) -> None:
        if not self.late_annotations:
            self.visit(node)
            return
        inner = [scope for scope in self.scopes if scope.kind in ("function", "comprehension")]
        self.later.extend(
            Read(n.id, n.lineno, certain=False)
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and not any(n.id in scope.local for scope in inner)
        )


def _type_parameters(node: ast.AST) -> Scope:
    """Return the scope of `[T]` in `def f[T](x: T)`: code in it runs at once (Python 3.12)."""
    parameters = getattr(node, "type_params", [])
    return Scope("comprehension", local=frozenset(p.name for p in parameters), hides_class=False)
