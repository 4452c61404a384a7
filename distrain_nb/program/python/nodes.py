"""The nodes of a statement that run with it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that run with it: all but the bodies of functions."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        children = [*ast.iter_child_nodes(node)]
        if isinstance(node, _FUNCTIONS):
            later = node.body if isinstance(node.body, list) else [node.body]
            children = [child for child in children if child not in later]
        waiting += reversed(children)


def words_in(node: ast.AST) -> frozenset[str]:
    """Return the names and attributes that a statement looks up or binds while it runs."""
    words = (getattr(part, "attr", None) or getattr(part, "id", None) for part in at_once(node))
    return frozenset(filter(None, words))


def first_line(node: ast.stmt | ast.Lambda) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return int(min([node.lineno, *[d.lineno for d in decorators]]))
