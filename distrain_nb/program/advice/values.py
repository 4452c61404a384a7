"""What an expression may stand for: names are followed back to what set them, in their function,
then anywhere.

Of several values it may have each; the order of statements is not regarded.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import last, parameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.program.advice.reading import Binding, Code


@dataclass(frozen=True, eq=False)
class Values:
    """Follows values through names, parameters, returned values and the items of literals.

    `through` are methods that give what they are called on in another form; functions of PyTorch
    with such a name give their first argument.
    """

    code: Code
    through: frozenset[str] = frozenset()

    def nodes(self, node: ast.expr | None) -> list[ast.expr]:
        """Return all that an expression may stand for and that nothing leads further back from: a
        call, a literal, a name that is not bound here."""
        todo, seen, ends = [(node, 0)] if node is not None else [], set[ast.expr](), []
        while todo:
            part, depth = todo.pop()
            if part not in seen:
                seen.add(part)
                steps = [*self._back(part, depth)]
                todo += steps
                ends += [] if steps else [part]
        return ends

    def bound_to(self, node: ast.expr) -> list[Binding]:
        """Return what sets a name, an attribute or an item: in its function, else anywhere."""
        bindings = self.code.bindings.get(ast.unparse(node), [])
        function = self.code.function_of(node)
        mine = [bound for bound in bindings if self.code.function_of(bound.by) is function]
        names = [parameter.arg for parameter in parameters(function)] if function else []
        return mine if mine or ast.unparse(node) in names else bindings

    def _back(self, node: ast.expr, depth: int) -> Iterable[tuple[ast.expr, int]]:
        """Yield the sources of an expression's value; with a `depth`, of its items."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            items = node.values if isinstance(node, ast.Dict) else node.elts
            return [(item, depth - 1) for item in items] if depth else []
        if isinstance(node, ast.IfExp):
            return [(node.body, depth), (node.orelse, depth)]
        if isinstance(node, ast.BoolOp):
            return [(value, depth) for value in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [(node.value, depth)]
        if isinstance(node, ast.Call):
            values = self._same(node) or self.code.returned(self.code.body_of(node))
            return [(value, depth) for value in values]
        sources = [(bound.value, bound.depth + depth) for bound in self.bound_to(node)]
        if not sources and isinstance(node, ast.Subscript):
            return [(node.value, depth + (not isinstance(node.slice, ast.Slice)))]
        return sources

    def _same(self, call: ast.Call) -> list[ast.expr]:
        name = self.code.name(call.func)
        if last(name) not in self.through:
            return []
        if name.startswith("torch.") and "()" not in name:
            return call.args[:1]
        return [call.func.value] if isinstance(call.func, ast.Attribute) else []
