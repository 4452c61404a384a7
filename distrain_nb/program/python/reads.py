"""Reads and bindings of names in expressions, in the order of execution."""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from distrain_nb.program.python.scopes import Scope, bound_names, function_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_IN_QUERY = re.compile(r"@([^\W\d]\w*)")  # pandas: df.query("age > @limit")


SUBCLASSES = "__subclasses__"
_DICTS = ("globals", "vars", "locals")


@dataclass(frozen=True)
class Use:
    """The first place where a name is needed.

    `at_once`: it is read while the code runs from top to bottom, not in a function's body.
    `certain`: nothing in the code can have bound it by then.
    `deleted`: it is not read there, but removed with `del`.
    """

    name: str
    line: int
    at_once: bool
    certain: bool
    deleted: bool = False


@dataclass(frozen=True)
class Read:
    """`certain`: code that gets there fails without the name, which an annotation need not."""

    name: str
    line: int
    certain: bool = True


@dataclass(frozen=True)
class ByText:
    """Code that reads names which it makes at run time, such as `globals()[name]`; `by` is the
    name of the function that does so, which the code may have defined otherwise."""

    code: str
    line: int
    by: str


@dataclass
class ExpressionWalker(ast.NodeVisitor):
    """Walks expressions, and keeps what they need and what is bound so far."""

    needs: dict[str, Use] = field(default_factory=dict)
    later: list[Read] = field(default_factory=list)  # what bodies of functions read
    bodies: dict[str, list[Read]] = field(default_factory=dict)  # the same by function's name
    bound_inside: set[str] = field(default_factory=set)  # by functions that declare `global`
    scopes: list[Scope] = field(default_factory=lambda: [Scope("module")])
    by_text: list[ByText] = field(default_factory=list)
    _read_by_text: set[ast.AST] = field(default_factory=set)  # calls whose names are known
    guarded: int = 0  # inside a try that catches NameError, or behind code that may bind any name

    # -- reading and binding ------------------------------------------------------------------

    def read(self, name: str, line: int) -> None:
        deferred = False
        innermost = True
        for scope in reversed(self.scopes):
            if scope.holds(name, innermost=innermost):
                if scope.kind == "class":
                    self.call(name)
                return
            deferred = deferred or scope.kind == "function"
            if scope.leads_outside(name, innermost=innermost):
                deferred = deferred or any(s.kind == "function" for s in self.scopes)
                break
            innermost = innermost and scope.kind == "comprehension" and not scope.hides_class
        if name == "__class__":
            return
        if deferred:
            self.later.append(Read(name, line))
        else:
            self.read_now(Read(name, line), certain=True)

    def read_now(self, read: Read, *, certain: bool) -> None:
        module = self.scopes[0]
        if module.alive and read.name not in module.surely:
            elsewhere = read.name in module.possibly or read.name in self.bound_inside
            self.need(read, at_once=True, certain=certain and not self.guarded and not elsewhere)
        self.call(read.name)

    def call(self, name: str) -> None:
        """Note that a function may be called from here on: the names that its body reads must be
        there."""
        for inner in self.bodies.pop(name, ()):
            self.read_now(inner, certain=False)

    def need(self, read: Read, *, at_once: bool, certain: bool, deleted: bool = False) -> None:
        known = self.needs.get(read.name)
        if known is None or (known.deleted and not deleted):
            self.needs[read.name] = Use(read.name, read.line, at_once, certain, deleted)
        elif certain and not known.certain:  # a function may be called here, and is one for sure
            self.needs[read.name] = replace(known, certain=True)

    def bind(self, *names: str) -> None:
        scope = next(s for s in reversed(self.scopes) if s.kind != "comprehension")
        for name in names:
            if name in scope.declared_global:
                self.bound_inside.add(name)
            elif scope.kind != "function":
                scope.bind(name)
                if scope.kind == "module":
                    self.bodies.pop(name, None)

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        self.scopes.append(scope)
        yield
        self.scopes.pop()

    def alternatives(self, *paths: Callable[[], None]) -> None:
        """Paths of which one is taken: sure afterwards is what all of them bind."""
        scope = self.scopes[-1]
        start, ends = scope.mark(), []
        for path in paths:
            scope.reset(start)
            path()
            ends.append(scope.mark())
        scope.join(ends)

    # -- expressions --------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        elif isinstance(node.ctx, ast.Load):
            self.read(node.id, node.lineno)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        if self.scopes[-1].kind == "comprehension":  # may run no round at all
            scope = next(s for s in reversed(self.scopes) if s.kind != "comprehension")
            scope.possibly.add(node.target.id)
        else:
            self.bind(node.target.id)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        self.alternatives(lambda: self.each(node.values[1:]), lambda: None)

    def each(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self.alternatives(lambda: self.visit(node.body), lambda: self.visit(node.orelse))

    def visit_Call(self, node: ast.Call) -> None:
        self._by_text(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == SUBCLASSES:
            self._notes(node, SUBCLASSES)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        fills = method in ("update", "setdefault") and _is_module_dict(node.func.value)  # type: ignore[attr-defined]
        # What these bind can't be read off the code.
        self.guarded += fills or (ast.unparse(node.func) == "exec" and len(node.args) == 1)
        if method in ("query", "eval"):
            self.guarded += 1
            for text in [a for a in node.args if isinstance(a, ast.Constant)]:
                for name in _IN_QUERY.findall(str(text.value)):
                    self.read(name, node.lineno)
            self.guarded -= 1

    # -- names by text ------------------------------------------------------------------------

    def _by_text(self, node: ast.Call) -> None:
        """Return the names that `globals().get("lr")` and `eval("lr")` read; else that names are
        read by text."""
        function = node.func
        if isinstance(function, ast.Attribute) and self._has_all_names(function.value):
            gets = function.attr == "get" and node.args and self._reads(node.args[0], node)
            if gets or function.attr in ("update", "setdefault", "clear", "pop"):
                self._read_by_text.add(function.value)
        elif isinstance(function, ast.Name) and function.id in ("eval", "exec"):
            if len(node.args) == 1 and not self._reads(node.args[0], node):
                self._notes(node, function.id)
        elif self._has_all_names(node) and node not in self._read_by_text:
            self._notes(node, ast.unparse(function))

    def _has_all_names(self, node: ast.AST) -> bool:
        """Return whether it is the names of the module: `vars()` in a function are the function's
        own."""
        if not _is_module_dict(node):
            return False
        inside = any(scope.kind in ("function", "class") for scope in self.scopes)
        return not inside or ast.unparse(node) == "globals()"

    def _reads(self, text: ast.expr, node: ast.expr) -> bool:
        """Read what a text names that is written out, a name or code, and that need not be there:
        `eval` may be a function of the notebook's."""
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return False
        try:
            tree = ast.parse(text.value.strip())
        except (SyntaxError, ValueError):
            return False
        for inner in ast.walk(tree):
            if hasattr(inner, "lineno"):
                inner.lineno = node.lineno
        start = len(self.later)
        self.guarded += 1
        self.each(tree.body)
        self.guarded -= 1
        self.later[start:] = [replace(read, certain=False) for read in self.later[start:]]
        return True

    def _notes(self, node: ast.expr, by: str) -> None:
        self.by_text.append(ByText(ast.unparse(node), node.lineno, by))

    def visit_Compare(self, node: ast.Compare) -> None:
        within = [*node.comparators] if isinstance(node.ops[0], (ast.In, ast.NotIn)) else []
        if within and self._has_all_names(within[0]) and self._reads(node.left, node):
            self._read_by_text.add(within[0])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._has_all_names(node.value) and (
            not isinstance(node.ctx, ast.Load) or self._reads(node.slice, node)
        ):
            self._read_by_text.add(node.value)
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store) and _is_module_dict(node.value):
            if isinstance(node.slice, ast.Constant):
                self.bound_inside.add(str(node.slice.value))
            else:
                self.guarded += 1

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        may_wait = isinstance(node, ast.GeneratorExp)  # until what it reads is bound
        self.guarded += may_wait
        self.visit(node.generators[0].iter)
        local = frozenset(bound_names([loop.target for loop in node.generators]))
        with self.inside(Scope("comprehension", local=local)):
            for loop in node.generators:
                self.each([*([] if loop is node.generators[0] else [loop.iter]), *loop.ifs])
            self.each([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.guarded -= may_wait

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        start = len(self.later)
        self.function(node)
        if not any(scope.kind == "function" for scope in self.scopes):
            for read in self.later[start:]:  # sorted(xs, key=lambda x: …) calls at once
                self.read_now(read, certain=False)

    def function(self, node: ast.Lambda) -> None:
        """Note a lambda that only gets a name here."""
        self.defaults(node.args)
        with self.inside(function_scope(node.args, [node.body])):
            self.visit(node.body)

    def defaults(self, arguments: ast.arguments) -> None:
        self.each(filter(None, [*arguments.defaults, *arguments.kw_defaults]))


def _is_module_dict(node: ast.AST) -> bool:
    """`globals()`, or `vars()` and `locals()`, which are the same at the top level."""
    return isinstance(node, ast.Call) and not node.args and ast.unparse(node.func) in _DICTS
