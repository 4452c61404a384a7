"""The runs of one experiment, as `%distrain runs --experiment NAME` shows them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.pages.listing import Listing, RunRow, columns_of, frame, values_of
from distrain_nb.run.summary import brief, duration
from distrain_nb.ui.table import MOST_ROWS, SIGNS, as_text, older, table_html

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from distrain_nb.run.pages.listing import ListedRun

HEADINGS = ("run", "name", "state", "duration")


@dataclass(frozen=True)
class ExperimentTable:
    """A row for each run, with its parameters and the best and newest value of each metric."""

    summaries: tuple[RunRow, ...]
    now: float

    @property
    def frame(self) -> pd.DataFrame:
        """The runs as a DataFrame, a row for each by its number."""
        return frame(self.summaries)

    @property
    def headings(self) -> tuple[str, ...]:
        """Called as the columns of `frame`."""
        return (*HEADINGS, *columns_of(self.summaries))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        columns = self.headings[len(HEADINGS) :]
        return tuple(self._row(summary, columns) for summary in self.summaries[:MOST_ROWS])

    def _row(self, row: RunRow, columns: Iterable[str]) -> tuple[str, ...]:
        run, values = row.summary, values_of(row)
        state = f"{SIGNS.get(run.state, '◌')} {run.state}"
        shown = (_shown(values[name]) if name in values else "" for name in columns)
        return str(run.id), run.name, state, duration(run.elapsed(self.now)), *shown

    def __repr__(self) -> str:
        return as_text(self.headings, self.rows, older(self.summaries))

    def _repr_html_(self) -> str:
        return table_html(self.headings, self.rows, self.summaries)


def experiment_table(runs: Iterable[ListedRun]) -> ExperimentTable:
    """Return the runs in the order given."""
    return ExperimentTable(Listing().read(runs), time.time())


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return brief(value) if math.isfinite(value) else str(value)
