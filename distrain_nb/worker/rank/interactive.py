"""Interactive parts of a cell: shows its last expression, and refuses questions to the user."""

from __future__ import annotations

import ast
import builtins
import sys
from types import CodeType
from typing import Any, Iterator

from distrain_nb.worker.rank import display
from distrain_nb.worker.rank.on_import import on_import


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


def begin() -> None:
    """Show values in rank 0 alone, and have questions fail with what to do instead."""
    sys.displayhook = display.show
    builtins.display = display.display  # type: ignore[attr-defined]  # as in a notebook
    builtins.input = _no_input
    sys.breakpointhook = _no_breakpoint
    on_import({**display.CHANGES, "getpass": _change_getpass, "pdb": _change_pdb})


def _no_input(prompt: object = "") -> str:
    raise EOFError(
        "input(%s) can't ask anyone in a run: set the value in the notebook before, "
        "or give it as --param NAME=VALUE" % (repr(prompt) if prompt else "")
    )


def _no_password(*_: Any, **__: Any) -> str:
    raise EOFError(
        "getpass() can't ask anyone in a run: read the value from os.environ, "
        "where --env NAME=VALUE puts it"
    )


def _no_breakpoint(*_: Any, **__: Any) -> None:
    raise RuntimeError(_nobody("breakpoint()"))


def _nobody(asks: str) -> str:
    return (
        f"{asks} can't ask anyone in a run: print what you want to know, "
        "or run the cell in the notebook without %%distrain"
    )


def _change_getpass(module: Any) -> None:
    module.getpass = _no_password


def _change_pdb(module: Any) -> None:
    """Change pdb, on which IPython's and PyTorch's build; leave one that has a stream of its own
    alone."""
    debugger = module.Pdb
    for name, asks in (("set_trace", "pdb.set_trace()"), ("interaction", "pdb")):
        setattr(debugger, name, _refusing(getattr(debugger, name), asks))


def _refusing(method: Any, asks: str) -> Any:
    def ask(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.stdin in (sys.stdin, sys.__stdin__):
            raise RuntimeError(_nobody(asks))
        return method(self, *arguments, **options)

    return ask
