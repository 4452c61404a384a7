"""A plain Python function as a cell, so that it can be submitted with its arguments."""

from __future__ import annotations

import inspect
import linecache
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.program.notebook.cells import Cell, Notebook, current_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def of_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Cell, Notebook]:
    """Return the cell that calls a function, and its module as the notebook that it needs.

    The cell is `result = train(*train_args, **train_kwargs)`, whose arguments are given values. A
    function of the notebook or main script travels as source, with its decorators; one of an
    imported module is imported. Raises OptionError for what has no name at the top level of a
    module: lambdas, methods, functions inside functions, and those whose name means another one.
    """
    plain = inspect.unwrap(function)
    if type(plain) is not FunctionType or "<" in plain.__qualname__:
        raise _refused(function)
    name, main = plain.__name__, plain.__module__ == "__main__"
    named = plain.__globals__.get(name)
    if named is not function and (not callable(named) or inspect.unwrap(named) is not plain):
        raise _refused(function)
    own = plain.__globals__ if main else {"__name__": "__main__", name: named}
    given, stars = dict[str, Any](), []
    for kind, star, values in (("args", "*", args), ("kwargs", "**", kwargs)):
        item = f"{name}_{kind}"
        while item in own:
            item += "_"
        if values:
            given[item] = values
            stars.append(f"{star}{item}")
    call = f"result = {name}({', '.join(stars)})"
    return Cell(f"{name}()", call), _around(plain, own, given, main=main)


def _around(
    function: FunctionType, own: Mapping[str, Any], given: Mapping[str, Any], *, main: bool
) -> Notebook:
    """Return the names and cells around the cell: the notebook's, or those of the script."""
    here = current_notebook() if own is vars(sys.modules["__main__"]) else None
    if here is not None:
        return replace(here, given=given)
    path = Path(inspect.getsourcefile(function) or function.__code__.co_filename)
    cells = [Cell(str(path), "".join(linecache.getlines(str(path))))] if main else []
    return Notebook(own, cells, path.absolute().parent, given)


def _refused(function: object) -> OptionError:
    name = getattr(function, "__qualname__", repr(function))
    return OptionError(
        f"cannot submit {name}: expected a function defined with `def` at the top level of a"
        " module or notebook, by the name that it has there"
    )
