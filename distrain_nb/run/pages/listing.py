"""Reading the rows of runs, each time only what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import RunUnreadable
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.pages.best_metric import final_metric_values, metric_values
from distrain_nb.run.pages.rows import Rows
from distrain_nb.run.pages.run_row import RunRow, row_of
from distrain_nb.run.run import Run
from distrain_nb.run.summary import summary_of, unreadable
from distrain_nb.worker.files.folder import EVENTS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Set
    from pathlib import Path


class Listing(Rows[Run, RunRow]):
    """The rows of runs. The row of a run that can't be read has the reason in `summary.error`."""

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[tuple[Path, float], EventFolder] = {}

    def unreadable(self, listed: Run, error: Exception) -> RunRow:
        self._events.pop(_key(listed), None)
        why = str(error)
        if not isinstance(error, RunUnreadable):
            why = f"run {listed.id} ({listed.name}) can't be read: {type(error).__name__}: {error}"
        summary = unreadable(listed, why)
        return RunRow(summary, listed.line, listed.experiment, {}, None, study=listed.study)

    def row(self, listed: Run) -> RunRow:
        summary = summary_of(listed)
        if summary.final:
            self._events.pop(_key(listed), None)
            return row_of(listed, summary, final_metric_values(listed.folder))
        events = EventFolder(listed.folder / EVENTS_FOLDER)
        events = self._events.setdefault(_key(listed), events)
        events.read()
        return row_of(listed, summary, metric_values(events))

    def forget_deleted(self, listed: Set[Path]) -> None:
        super().forget_deleted(listed)
        for folder, created in tuple(self._events):
            if folder not in listed and not folder.exists():
                del self._events[folder, created]


def _key(run: Run) -> tuple[Path, float]:
    """Return folder and time of a run. A new run may get the folder of one removed by hand."""
    return run.folder, run.created
