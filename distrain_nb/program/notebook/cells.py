"""Cells and notebooks: everything that capture looks at, as plain data.

A plain Python function as a cell, so that it can be submitted with its arguments.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.observed import Observer, observer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from distrain_nb.program.gathering.ranks import RankNames

# What IPython itself defines. It also hides the names of `%pylab` and of its startup files.
_OF_IPYTHON = {"In", "Out", "get_ipython", "exit", "quit", "open"}


@dataclass(frozen=True)
class Cell:
    """One executed cell.

    `label` is its name in tracebacks, such as "Cell In[7]". `source` is the whole cell as its
    author sees it, a magic line included, so that line numbers are those on the screen. `failed` is
    a line and column in the statement that raised an error, if one was seen to.
    """

    label: str
    source: str
    failed: tuple[int, int] | None = None


@dataclass(frozen=True)
class Notebook:
    """What a cell may need: names, the executed cells (oldest first), and the folder of modules.

    `given` are values that take the place of the notebook's: those that options set. `optional`
    are names among them that need not be read, as what they name is there all the same. `observer`
    saw what its cells asked about the world. `transformers` are those of IPython that change a
    cell's tree before it runs. `ranks` are those of the session that the cell is for.
    """

    namespace: Mapping[str, Any]
    cells: Sequence[Cell]
    folder: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    observer: Observer | None = None
    transformers: Sequence[object] = ()
    ranks: RankNames | None = None


def working_folder() -> Path:
    """Return where Python runs. Raises OptionError if that folder has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise OptionError(
            "the working folder has been removed: change to one that exists, as in `%cd ~`"
        ) from None


# -- the notebook that Python runs in -------------------------------------------------------------


def current_notebook() -> Notebook | None:
    """Return the notebook or IPython session that this process runs; None for a plain script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return notebook_of(shell) if shell is not None else None


def notebook_of(shell: Any) -> Notebook:
    """Return the names of an InteractiveShell, and the cells that have been executed in it."""
    sources = shell.history_manager.input_hist_raw
    cells = [Cell(label(n), source) for n, source in enumerate(sources) if source]
    hidden = {n: v for n, v in shell.user_ns_hidden.items() if n in _OF_IPYTHON or n[0] == "_"}
    names = {n: v for n, v in shell.user_ns.items() if n not in hidden or hidden[n] is not v}
    watching = observer_of(shell.user_ns) or Observer(
        names, lambda *_: None, frozenset(cell.label for cell in cells)
    )
    cells = [replace(cell, failed=watching.failed.get(cell.label)) for cell in cells]
    changing = shell.ast_transformers
    return Notebook(names, cells, working_folder(), observer=watching, transformers=changing)


def label(number: int) -> str:
    """Return IPython's name for a cell in tracebacks."""
    return f"Cell In[{number}]"


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
