"""A study below its cell: its table, replaced as trials come and go; in a terminal, a line each."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING

from distrain_nb.errors import RunUnreadable
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import Frontend, frontend
from distrain_nb.ui.study_table import MOST_ROWS, StudyTable

if TYPE_CHECKING:
    from distrain_nb.study import Study

REFRESH_EVERY_S = 0.5


class StudyMonitor:
    """Shows a study to its end. `wait` does so in the cell, `follow` in a thread."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._table = StudyTable.of(study)
        self._terminal = frontend() is Frontend.TERMINAL
        self._told: set[int] = set()
        self._output: outputs.CellOutput | None = None

    def show(self) -> None:
        """Display it below the cell that is running."""
        if self._terminal:
            self._tell()
        else:
            self._output = outputs.show(self._table.bundle)

    def wait(self) -> None:
        """Show it until it has ended."""
        while not self._table.state.final:
            time.sleep(REFRESH_EVERY_S)
            self._refresh()

    def follow(self) -> None:
        """Let the cell go; what shows the outputs may take nothing after its end."""
        if self._terminal or self._table.state.final:
            return
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._follow,), daemon=True).start()

    def _follow(self) -> None:
        try:
            self.wait()
        except RunUnreadable:  # it has been deleted
            return

    def _refresh(self) -> None:
        before, self._table = self._table, StudyTable.of(self._study)
        if self._terminal:
            self._tell()
        elif self._output and self._table.bundle != before.bundle:
            self._output.replace(self._table.bundle)

    def _tell(self) -> None:
        """A line for the study at first and at last, and for each trial that has ended."""
        if not self._told:
            print(self._table.line, flush=True)
        self._told.add(0)
        for row, trial in zip(self._table.rows[::-1], self._table.trials[-MOST_ROWS:], strict=True):
            if trial.state.final and trial.number not in self._told:
                self._told.add(trial.number)
                print("  ".join(filter(None, row)), flush=True)
        if self._table.state.final:
            print(self._table.line, flush=True)
