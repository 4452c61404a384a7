"""What an expression may stand for: names are followed back to what made their values.

A name is looked up in its function, then around it. Of several values it may have any that can
reach the place where it is read.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.program.advice.reading import (
    ANY,
    LOOPS,
    Function,
    arguments,
    last,
    parameters,
    preceding,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.advice.reading import Bound, Code, Path


class Made(NamedTuple):
    """An expression that nothing leads further back from: a call, a literal, a name that is not
    bound here; with a path, an item of it."""

    node: ast.expr
    path: Path

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same value: names are the same by their text, calls by their place."""
        named = isinstance(self.node, (ast.Name, ast.Attribute))
        return (ast.unparse(self.node) if named else self.node, self.path)


@dataclass(frozen=True, eq=False)
class Values:
    """Follows values through names, parameters, returned values and the items of literals.

    `through` are methods that give what they are called on in another form; functions of PyTorch
    with such a name give their first argument.
    """

    code: Code
    through: frozenset[str] = frozenset()

    def of(self, node: ast.expr) -> list[Made]:
        """All that an expression may stand for."""
        return list(self._made(node, (), set()))

    def nodes(self, node: ast.expr | None) -> list[ast.expr]:
        """The same without the paths; empty for no expression."""
        return [made.node for made in self.of(node)] if node is not None else []

    def reaching(self, name: ast.expr) -> list[ast.expr]:
        """The values that a name is set to before it is read, one step back."""
        return [bound.value for bound in self._bound_to(name)]

    def stored(self, name: ast.expr) -> list[ast.expr]:
        """What is put under keys of a name: `state["model"] = …`."""
        return [bound.value for bound in self.code.bindings.get(f"{ast.unparse(name)}[]", ())]

    def arguments(self, name: ast.expr) -> list[tuple[ast.Call, ast.expr]]:
        """The calls that give a parameter its value, each with that value."""
        function = self.code.function_of(name)
        if not (function and isinstance(name, ast.Name)):
            return []
        calls = [call for call in self.code.calls if self.code.body_of(call) is function]
        given = [(call, each) for call in calls for each in arguments(call, function).items()]
        return [(call, value) for call, (own, value) in given if own.arg == name.id]

    def _made(self, node: ast.expr, path: Path, seen: set[ast.expr]) -> Iterator[Made]:
        if node in seen:
            return
        seen.add(node)
        steps = list(self._back(node, path))
        if not steps:
            yield Made(node, path)
        for step, rest in steps:
            yield from self._made(step, rest, seen)

    def _back(self, node: ast.expr, path: Path) -> Iterable[tuple[ast.expr, Path]]:
        """What an expression, or an item of it, has its value from; nothing if that is open."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            return [(each, path[1:]) for each in _items(node, path[0])] if path else []
        if isinstance(node, ast.IfExp):
            return [(node.body, path), (node.orelse, path)]
        if isinstance(node, ast.BoolOp):
            return [(each, path) for each in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [(node.value, path)]
        if isinstance(node, ast.Call):
            same = self._same(node)
            return [(value, path) for value in (same or self._returned(node))]
        return self._named(node, path)

    def _named(self, node: ast.expr, path: Path) -> Iterable[tuple[ast.expr, Path]]:
        found = [(bound.value, (*bound.path, *path)) for bound in self._bound_to(node)]
        if found or not isinstance(node, ast.Subscript):
            return found
        if isinstance(node.slice, ast.Slice):
            return [(node.value, path)]
        return [(node.value, (_index(node.slice), *path))]

    def _same(self, call: ast.Call) -> list[ast.expr]:
        name = self.code.name(call.func)
        if last(name) not in self.through:
            return []
        if name.startswith("torch.") and "()" not in name:
            return call.args[:1]
        return [call.func.value] if isinstance(call.func, ast.Attribute) else []

    def _returned(self, call: ast.Call) -> list[ast.expr]:
        function = self.code.body_of(call)
        if function is None or function.name == "__init__":
            return []
        returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
        mine = (node for node in returns if self.code.function_of(node) is function)
        return [node.value for node in mine if node.value is not None]

    def _bound_to(self, node: ast.expr) -> list[Bound]:
        """What sets a name, an attribute or an item where it can be read here."""
        found = self.code.bindings.get(ast.unparse(node), [])
        if not isinstance(node, ast.Name):
            holder = self.code.innermost(node, ast.ClassDef)
            of_class = (b for b in found if self.code.innermost(b.by, ast.ClassDef) is holder)
            return list(of_class) or found
        for scope in (outer for outer, _ in self.code.around(node)):
            if not isinstance(scope, (Function, ast.Lambda, ast.Module)):
                continue
            function = scope if isinstance(scope, Function) else None
            mine = [bound for bound in found if self.code.function_of(bound.by) is function]
            if mine and not isinstance(scope, ast.Lambda):
                return self._reaching(node, mine)
            if node.id in _all_parameters(scope):
                return []
        return found  # set in another function, for all

    def _reaching(self, name: ast.Name, found: list[Bound]) -> list[Bound]:
        """The bindings that none other hides, of those in the function that a name is read in."""
        if self.code.function_of(name) is not self.code.function_of(found[0].by):
            return found
        around = list(self.code.around(name))
        sure = {id(each) for outer, child in around for each in preceding(outer, child)}
        hiding = [b for b in found if id(b.by) in sure and not isinstance(b.by, ast.AugAssign)]
        start = max(map(_end, hiding), default=(0, 0))
        loops = {id(outer) for outer, _ in around if isinstance(outer, (ast.For, ast.While))}
        return [b for b in found if _end(b) >= start and self._comes_first(b, name, loops)]

    def _comes_first(self, bound: Bound, name: ast.Name, loops: set[int]) -> bool:
        if self.code.apart(bound.by, name):
            return False
        if _end(bound) <= (name.lineno, name.col_offset) or isinstance(bound.by, ast.comprehension):
            return True
        return any(id(outer) in loops for outer, _ in self.code.around(bound.by))


def _end(bound: Bound) -> tuple[int, int]:
    """From where on a binding holds."""
    inner = (ast.NamedExpr, ast.withitem, *LOOPS)
    node = bound.value if isinstance(bound.by, inner) else bound.by
    return (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def _items(node: ast.List | ast.Tuple | ast.Set | ast.Dict, index: int | None) -> list[ast.expr]:
    elements = node.values if isinstance(node, ast.Dict) else node.elts
    known = index is not ANY and not isinstance(node, ast.Dict)
    return elements[index:][:1] if known else elements


def _index(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else ANY


def _all_parameters(scope: ast.AST) -> list[str]:
    if not isinstance(scope, (Function, ast.Lambda)):
        return []
    return [parameter.arg for parameter in (*parameters(scope), *scope.args.kwonlyargs)]
