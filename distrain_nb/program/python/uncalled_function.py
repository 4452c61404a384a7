"""The function of a text that only defines: what it most likely was to call, as nothing does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
