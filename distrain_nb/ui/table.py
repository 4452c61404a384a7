"""The table of runs that `%distrain` shows."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.escapes import plain
from distrain_nb.run.pages.listing import Listing, RunRow, frame
from distrain_nb.run.summary import brief, clock, duration, plural, progress_text
from distrain_nb.ui.outputs import LITERAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from distrain_nb.run.pages.listing import ListedRun

HEADINGS = ("run", "name", "state", "where", "best metric", "duration", "started")
LONGEST_CAUSE = 60
SIGNS = {
    "succeeded": "✓",
    "failed": "✕",
    "cancelled": "■",
    "running": "●",
    "starting": "◐",
    "unreadable": "?",
}
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
        """The experiment comes last, and only where a run has one."""
        return tuple(
            (*_row(summary, self.now), *((summary.experiment,) if self._filed else ()))
            for summary in self.summaries[:MOST_ROWS]
        )

    @property
    def headings(self) -> tuple[str, ...]:
        return (*HEADINGS, *(("experiment",) if self._filed else ()))

    @property
    def more(self) -> str:
        """What is said of the runs that have no row; empty where all have one."""
        return older(self.summaries)

    @property
    def _filed(self) -> bool:
        return any(summary.experiment for summary in self.summaries[:MOST_ROWS])

    def __repr__(self) -> str:
        more = "\n".join(filter(None, (self.more, self._time)))
        return as_text(self.headings, self.rows, more) if self.rows else NONE_YET

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": f"{_live_mark()}{self.still()}", "text/plain": repr(self)}

    def still(self) -> str:
        """Return the table in HTML that needs neither kernel nor scripts."""
        if not self.rows:
            return f"<p>{html.escape(NONE_YET)}</p>"
        return table_html(self.headings, self.rows, self.summaries, self._time)

    @property
    def _time(self) -> str:
        """When the runs were so, where one of them may still change."""
        changing = any(not row.summary.final for row in self.summaries)
        return f"as of {clock(self.now)}" if changing else ""


def runs_table(runs: Iterable[ListedRun]) -> RunsTable:
    """Return the runs with their state, place, layout, best metric and times, in the order
    given."""
    return RunsTable(Listing().read(runs), time.time())


def older(summaries: Sequence[RunRow]) -> str:
    """Say how many runs have no row; empty where all have one."""
    count = len(summaries) - MOST_ROWS
    have = "has" if count == 1 else "have"
    words = f"{plural(count, 'older run')} {have} no row here: see distrain_nb.runs().frame"
    return words if count > 0 else ""


def as_text(headings: Sequence[str], rows: Iterable[Sequence[str]], more: str) -> str:
    """Return rows below their headings, in columns, and `more` below them, for a terminal too."""
    listed = [[plain(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )
    return "\n".join(filter(None, (*lines, more)))


def table_html(
    headings: Iterable[str],
    rows: Iterable[Sequence[str]],
    summaries: Sequence[RunRow],
    time: str = "",
) -> str:
    """Return a table with a row of cells for each of the first runs, the state in the third.

    Below it stands the `time` at which they were so.
    """
    from distrain_nb.ui.document import style

    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in headings)
    body = "".join(map(_row_html, rows, summaries))
    more = "".join(f"<p>{line}</p>" for line in (older(summaries), time) if line)
    return (
        f'{style()}<div class="distrain {LITERAL}" style="overflow-x:auto"><table class="dn-table">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )


def _live_mark() -> str:
    """Return where the live table stands in a page that has its widget."""
    from distrain_nb.ui.frontend import frontend

    if not frontend().has_widgets:
        return ""
    from distrain_nb.ui.live_table import LiveTable

    return LiveTable().mark


def _row(row: RunRow, now: float) -> tuple[str, ...]:
    summary = row.summary
    doing = f": {progress_text(summary.progress, now)}" if summary.progress else ""
    return (
        str(summary.id),
        summary.name,
        f"{SIGNS.get(summary.state, '◌')} {summary.state}{doing}{_shortened(row.cause)}",
        ", ".join(filter(None, (summary.where, summary.size, row.machines))),
        f"{row.best.tag} {brief(row.best.value)}" if row.best else "",
        duration(summary.elapsed(now)),
        clock(summary.begin),
    )


def _shortened(cause: str) -> str:
    if not cause:
        return ""
    return f": {cause}" if len(cause) <= LONGEST_CAUSE else f": {cause[:LONGEST_CAUSE]}…"


def _row_html(row: Sequence[str], run_row: RunRow) -> str:
    cells = [f"<td>{html.escape(cell)}</td>" for cell in row]
    why = f' title="{html.escape(run_row.cause)}"' if run_row.cause else ""
    cells[2] = f'<td class="dn-state"{why}>{html.escape(row[2])}</td>'
    return f'<tr data-state="{run_row.summary.state}">{"".join(cells)}</tr>'
