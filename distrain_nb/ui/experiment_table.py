"""The table of the runs of one experiment, which `%distrain runs --experiment NAME` shows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.run_frame import columns_of, values_of
from distrain_nb.run.pages.run_row import RunRow
from distrain_nb.run.summary import duration, short_number, state_text_of
from distrain_nb.ui.table import MOST_ROWS, RunsTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.run.run import Run

EXPERIMENT_HEADINGS = ("run", "name", "state", "duration")


@dataclass(frozen=True, repr=False)
class ExperimentTable(RunsTable):
    """A row for each run, with its parameters and the best and newest value of each metric."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Called as the columns of `frame`."""
        return (*EXPERIMENT_HEADINGS, *columns_of(self.summaries))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        columns = self.headings[len(EXPERIMENT_HEADINGS) :]
        return tuple(self._row(summary, columns) for summary in self.summaries[:MOST_ROWS])

    def _row(self, row: RunRow, columns: Iterable[str]) -> tuple[str, ...]:
        run, values = row.summary, values_of(row)
        shown = (_shown(values[name]) if name in values else "" for name in columns)
        time = duration(run.elapsed(self.now))
        return str(run.id), run.name, state_text_of(run.state, run.state), time, *shown

    def _repr_html_(self) -> str:
        return self.still()


def experiment_table(runs: Iterable[Run]) -> ExperimentTable:
    """Return the runs in the order given."""
    return ExperimentTable(Listing().read(runs), time.time())


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return short_number(value) if math.isfinite(value) else str(value)
