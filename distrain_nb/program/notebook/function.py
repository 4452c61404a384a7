"""A plain Python function as a cell, so that it can be submitted from a script."""

from __future__ import annotations

import inspect
import linecache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.program.notebook.cells import Cell, Notebook

if TYPE_CHECKING:
    from collections.abc import Callable


def of_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Cell, Notebook]:
    """The cell that calls a function, and its module as the notebook that it needs.

    The cell is `result = train(*args, **kwargs)`. A function of the main script travels as
    source; one of an imported module is imported. Raises OptionError for what has no name at
    the top level of a module: lambdas, methods, functions inside functions.
    """
    if not isinstance(function, FunctionType) or "<" in function.__qualname__:
        name = getattr(function, "__qualname__", repr(function))
        raise OptionError(
            f"{name} can't be submitted: give a function that `def` makes at the top level of a"
            " module or notebook"
        )
    name, main = function.__name__, function.__module__ == "__main__"
    given = {"args": args, "kwargs": kwargs} if args or kwargs else {}
    own = function.__globals__ if main else {"__name__": "__main__", name: function}
    path = Path(inspect.getsourcefile(function) or function.__code__.co_filename)
    cells = [Cell(str(path), "".join(linecache.getlines(str(path))))] if main else []
    call = "*args, **kwargs" if given else ""
    cell = Cell(f"{name}()", f"result = {name}({call})")
    return cell, Notebook(own, cells, path.absolute().parent, given)
