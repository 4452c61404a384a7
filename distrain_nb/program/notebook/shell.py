"""The notebook that Python runs in, as capture sees it."""

from __future__ import annotations

import sys
from typing import Any

from distrain_nb.observed import Observer, observer_of
from distrain_nb.program.notebook.cells import Cell, Notebook, working_folder


def current_notebook() -> Notebook | None:
    """The notebook or IPython session that this process runs; None for a plain script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return notebook_of(shell) if shell is not None else None


def notebook_of(shell: Any) -> Notebook:
    """The names of an InteractiveShell, and the cells that have been executed in it."""
    sources = shell.history_manager.input_hist_raw
    cells = [Cell(label(n), source) for n, source in enumerate(sources) if source]
    hidden = shell.user_ns_hidden  # what IPython itself defines, such as an `open` of its own
    names = {n: v for n, v in shell.user_ns.items() if n not in hidden or hidden[n] is not v}
    watching = observer_of(shell.user_ns) or Observer(
        names, lambda *_: None, frozenset(cell.label for cell in cells)
    )
    return Notebook(names, cells, working_folder(), observer=watching)


def label(number: int) -> str:
    """What IPython calls a cell in tracebacks."""
    return f"Cell In[{number}]"
