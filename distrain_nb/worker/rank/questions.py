"""What asks the user in a cell: `input()`, `getpass()` and debuggers ask at the notebook.

Where nobody can answer, they fail and say what to do instead. `sys.stdin` itself stays empty:
what reads it can't say what it asks, nor which rank it is. A process that a rank spawns, and does
not fork, can't ask either: it has a `sys.stdin` and names of its own, and knows the program alone,
not which process of the run it belongs to.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any, Dict, Optional

from distrain_nb.worker.rank import debugger, prompt
from distrain_nb.worker.rank.on_import import Change


def begin() -> Dict[str, Change]:
    """Have questions asked; return the changes to modules that ask."""
    builtins.input = _input
    sys.breakpointhook = _break_here
    return {
        "getpass": _change_getpass,
        "pdb": debugger.change_pdb,
        "IPython.core.debugger": debugger.change_ipython,
        "IPython.terminal.debugger": debugger.change_terminal,
    }


def _break_here(*_: Any, header: Optional[str] = None, **__: Any) -> None:
    """Stand for `breakpoint()`: stop in the function that calls this one."""
    if os.environ.get("PYTHONBREAKPOINT") != "0":
        debugger.require("breakpoint()")
        debugger.stop_in(sys._getframe().f_back, header)


def _input(text: object = "") -> str:
    try:
        return prompt.ask(str(text))
    except prompt.NobodyAnswers:
        raise EOFError(
            "input(%s) can't ask anyone in a run: set the value in the notebook before, "
            "or give it as --param NAME=VALUE" % (repr(text) if text else "")
        ) from None


def _password(text: str = "Password: ", *_: Any, **__: Any) -> str:
    try:
        return prompt.ask(text, secret=True)
    except prompt.NobodyAnswers:
        raise EOFError(
            "getpass() can't ask anyone in a run: read the value from os.environ, "
            "where --env NAME=VALUE puts it"
        ) from None


def _change_getpass(module: Any) -> None:
    module.getpass = _password
