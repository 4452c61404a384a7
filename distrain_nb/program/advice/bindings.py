"""How code binds names: by assignments, loops and `with`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)


def bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target that a node binds, with its value; that of a loop is one item of the value."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
        yield node.target, node.value
    elif isinstance(node, LOOPS):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr


def _pairs(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    both = (ast.Tuple, ast.List)
    if isinstance(target, both) and isinstance(value, both):
        return zip(target.elts, value.elts)  # noqa: B905
    return [(target, value)]
