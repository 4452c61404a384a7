"""The last expression of a cell: compiled so that its value is shown, as in a notebook."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Iterator


def codes(text: str, label: str, flags: int, shows: bool) -> Iterator[CodeType]:
    """Yield the text compiled; if it `shows`, its last expression goes to `sys.displayhook`.

    As in a notebook, a semicolon at the end keeps it to itself. Raises SyntaxError.
    """
    tree = compile(text, label, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1:]
    if shows and last and isinstance(last[0], ast.Expr) and not text.rstrip().endswith(";"):
        del tree.body[-1]
        yield compile(tree, label, "exec", flags, dont_inherit=True)
        yield compile(ast.Interactive(last), label, "single", flags, dont_inherit=True)
    else:
        yield compile(tree, label, "exec", flags, dont_inherit=True)
