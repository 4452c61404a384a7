"""What a cell does in a notebook beside computing: its last expression is shown; nobody answers."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from types import CodeType
from typing import Any, Iterator


def codes(text: str, label: str, flags: int, shows: bool) -> Iterator[CodeType]:
    """The text compiled; if it `shows`, its last expression goes to `sys.displayhook`.

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


def begin() -> None:
    """Show values in rank 0 alone, and have questions fail with what to do instead."""
    if not _is_first():
        sys.displayhook = lambda _: None
    builtins.input = _no_input
    sys.breakpointhook = _no_breakpoint


def _is_first() -> bool:
    rank = os.environ.get("RANK")
    return rank == "0" or (rank is None and "CLUSTER_SPEC" not in os.environ)


def _no_input(prompt: object = "") -> str:
    raise EOFError(
        "input(%s) has nobody to ask in a run: set the value in the notebook before, "
        "or give it as --param NAME=VALUE" % (repr(prompt) if prompt else "")
    )


def _no_breakpoint(*_: Any, **__: Any) -> None:
    raise RuntimeError(
        "breakpoint() has nobody to ask in a run: print what you want to know, "
        "or run the cell in the notebook without %%distrain"
    )
