"""A study below its cell: a live view where a page has one, else its charts and table, replaced as
trials come and go; in a terminal, a line each.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.saved.study_table import MOST_ROWS, StudyTable
from distrain_nb.study.importances import Importances
from distrain_nb.study.summary import summary_of
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import Frontend, frontend
from distrain_nb.ui.live_study import LiveStudy

if TYPE_CHECKING:
    from distrain_nb.study import Study

REFRESH_EVERY_S = 0.5
# What a document has under a live view matters when it is saved.
REPLACED_EVERY_S, SEEN_EVERY_S = 3.0, 30.0


class StudyMonitor:
    """Shows a study to its end. `wait` does so in the cell, `follow` in a thread."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._summary = summary_of(study)
        self._importances = Importances()
        self._frontend = frontend()
        self._live: LiveStudy | None = None
        self._printed: set[int] = set()
        self._output: outputs.CellOutput | None = None
        self._shown: outputs.Bundle = {}
        self._due = 0.0
        self._let_go = False

    def show(self) -> None:
        """Display it below the cell that is running."""
        if self._frontend is Frontend.TERMINAL:
            self._tell()
            return
        if self._frontend.has_widgets:
            self._live = LiveStudy(self._study, self._summary, self._importances)
        self._shown = self._bundle()
        self._output = outputs.show(self._shown)
        self._due = time.monotonic() + REPLACED_EVERY_S

    def wait(self) -> None:
        """Show it until it has ended."""
        if self._live:
            self._live.widget.waiting = not self._let_go
        while not self._summary.final:
            time.sleep(REFRESH_EVERY_S)
            self._refresh()
        if self._frontend is Frontend.TERMINAL:
            return
        self._tell_last()
        self._importances.of(self._summary.spec, self._summary.trials, wait=True)
        self._tell_last()
        self._replace()

    def follow(self) -> None:
        """Let the cell go; what shows the outputs may take nothing after its end."""
        if self._frontend is Frontend.TERMINAL:
            return
        self._let_go = True
        outputs.in_background(self.wait, f"distrain-study-{self._study.id}").start()

    def _refresh(self) -> None:
        self._summary = summary_of(self._study)
        if self._frontend is Frontend.TERMINAL:
            self._tell()
            return
        if self._live:
            self._live.tell(self._summary)
        if time.monotonic() >= self._due:
            self._replace()

    def _tell_last(self) -> None:
        if self._live:
            self._live.tell(self._summary, last=True)
            self._live.widget.waiting = False

    def _replace(self) -> None:
        """Replace the document by a current one, with the place of the live view, if any."""
        every = SEEN_EVERY_S if self._live and self._live.is_seen else REPLACED_EVERY_S
        self._due = time.monotonic() + every
        bundle = self._bundle()
        lost = self._let_go and self._frontend is Frontend.SERVER
        if self._output and bundle != self._shown and not lost:
            self._output.replace(bundle)
            self._shown = bundle

    def _bundle(self) -> outputs.Bundle:
        shares = self._importances.of(self._summary.spec, self._summary.trials)
        mark = self._live.mark if self._live else ""
        return StudyTable(self._summary, shares, mark)._repr_mimebundle_()

    def _tell(self) -> None:
        """Print a line for the study at its start and its end, and for each trial that ended."""
        table = StudyTable(self._summary)
        if not self._printed:
            print(self._summary.line, flush=True)
        self._printed.add(0)
        for row, trial in zip(table.rows[::-1], self._summary.trials[-MOST_ROWS:], strict=True):
            if trial.state.final and trial.number not in self._printed:
                self._printed.add(trial.number)
                print(escapes.plain("  ".join(filter(None, row))), flush=True)
        if self._summary.final:
            print(self._summary.line, flush=True)


def study_display(study: Study) -> StudyTable | None:
    """Return a study to be displayed; None where a page has it, and keeps it current."""
    if frontend().has_widgets:
        monitor = StudyMonitor(study)
        monitor.show()
        monitor.follow()
        return None
    summary = summary_of(study)
    of_all = frontend() is Frontend.DOCUMENT
    return StudyTable(
        summary, Importances().of(study.spec, summary.trials, wait=True) if of_all else {}
    )
