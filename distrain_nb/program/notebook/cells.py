"""Cells and notebooks: everything that capture looks at, as plain data."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.observed import Observer, observer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
