"""What keeps a cell from running is shown below it, with its place in the cell and the ways out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError, RunCancelled, RunFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from IPython.core.interactiveshell import InteractiveShell

    from distrain_nb.ui.problem import Cells


@contextmanager
def problems_shown(line: str, cell: str | None, shell: InteractiveShell) -> Iterator[None]:
    """Errors of the block are shown, but for the end of a run, which its own view shows."""
    try:
        yield
    except (RunFailed, RunCancelled):
        raise
    except DistrainError as error:
        from distrain_nb.ui.problem_panel import show_problem

        show_problem(error, _cells(line, cell, shell))
        raise


def _cells(line: str, cell: str | None, shell: InteractiveShell) -> Cells:
    """The text that is running, as its author sees it, and what was executed before."""
    from distrain_nb.program.notebook.shell import label
    from distrain_nb.ui.problem import Cells

    sources = shell.history_manager.input_hist_raw
    others = {label(number): source for number, source in enumerate(sources)}
    text = f"%distrain {line}" if cell is None else f"%%distrain {line}\n{cell}"
    return Cells(text, label(len(sources) - 1), others)
