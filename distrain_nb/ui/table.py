"""The table of runs that `%distrain` shows."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.pages.listing import Listing
from distrain_nb.run.pages.run_frame import frame
from distrain_nb.run.pages.run_row import RunRow
from distrain_nb.run.summary import clock, duration, plural, short_number, state_text_of
from distrain_nb.saved.document import style
from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.saved.tables import as_text, table_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

    from distrain_nb.run.run import Run

HEADINGS = ("run", "name", "state", "where", "best metric", "duration", "started")
STATE = HEADINGS.index("state")
MOST_ROWS = 50  # of which text and pictures are kept: nobody reads on
NONE_YET = "no runs yet: put %%distrain -n 2 on top of a training cell"


@dataclass(frozen=True)
class RunsTable:
    """One row of text for each run; prints as text, and shows as a table in a notebook.

    Where the page has widgets the table is live, with what can be done with each run; what is
    saved is its still picture. That and the text have the first `MOST_ROWS` runs; `frame` has all.
    """

    summaries: tuple[RunRow, ...]
    now: float

    @property
    def frame(self) -> pd.DataFrame:
        """The runs as a DataFrame, a row for each by its number."""
        return frame(self.summaries)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Cost and experiment come last, and only where a run has one."""
        return tuple(
            (*_row(summary, self.now), *(more for more, some in self._more(summary) if some))
            for summary in self.summaries[:MOST_ROWS]
        )

    @property
    def headings(self) -> tuple[str, ...]:
        some = (("cost", self._costs), ("experiment", self._filed))
        return (*HEADINGS, *(heading for heading, is_there in some if is_there))

    def _more(self, row: RunRow) -> Iterator[tuple[str, bool]]:
        yield row.summary.cost, self._costs
        yield row.experiment, self._filed

    @property
    def more(self) -> str:
        """What is said of the runs that have no row; empty where all have one."""
        count = len(self.summaries) - MOST_ROWS
        have = "has" if count == 1 else "have"
        words = f"{plural(count, 'older run')} {have} no row here: see distrain_nb.runs().frame"
        return words if count > 0 else ""

    @property
    def _filed(self) -> bool:
        return any(summary.experiment for summary in self.summaries[:MOST_ROWS])

    @property
    def _costs(self) -> bool:
        return any(summary.summary.cost for summary in self.summaries[:MOST_ROWS])

    @property
    def _uncounted(self) -> str:
        """What costs leave out."""
        rows = (row.summary for row in self.summaries[:MOST_ROWS])
        notes = dict.fromkeys(row.cost_note for row in rows if row.cost and row.cost_note)
        return f"cost: {'; '.join(notes)}" if notes else ""

    def __repr__(self) -> str:
        more = "\n".join(filter(None, (self.more, self._uncounted, self._time)))
        return as_text(self.headings, self.rows, more) if self.rows else NONE_YET

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return f"{_live_mark()}{self.still()}"

    def still(self) -> str:
        """Return the table in HTML that needs neither kernel nor scripts."""
        if not self.rows:
            return f"<p>{html.escape(NONE_YET)}</p>"
        about = [(row.summary.state, row.summary.cause, False) for row in self.summaries]
        lines = (self.more, self._uncounted, self._time)
        more = "".join(f"<p>{html.escape(line)}</p>" for line in lines if line)
        return (
            f'{style()}<div class="distrain {LITERAL}" {OWN_KEYS} style="overflow-x:auto">'
            f"{table_html(self.headings, self.rows, about, STATE)}{more}</div>"
        )

    @property
    def _time(self) -> str:
        """Return the time of the table, if a run may still change."""
        changing = any(not row.summary.final for row in self.summaries)
        return f"as of {clock(self.now)}" if changing else ""


def runs_table(runs: Iterable[Run]) -> RunsTable:
    """Return the runs with their state, place, layout, best metric and times, in the order
    given."""
    return RunsTable(Listing().read(runs), time.time())


def _live_mark() -> str:
    """Return where the live table stands in a page that has its widget."""
    from distrain_nb.ui.frontend import frontend

    if not frontend().has_widgets:
        return ""
    from distrain_nb.ui.live_table import LiveTable

    return LiveTable().mark


def _row(row: RunRow, now: float) -> tuple[str, ...]:
    summary = row.summary
    words = ": ".join(filter(None, (summary.state, summary.doing(now))))
    return (
        str(summary.id),
        summary.name,
        state_text_of(summary.state, words, summary.cause),
        ", ".join(filter(None, (summary.where, summary.size, row.machines))),
        f"{row.best.tag} {short_number(row.best.value)}" if row.best else "",
        duration(summary.elapsed(now)),
        clock(summary.begin),
    )
