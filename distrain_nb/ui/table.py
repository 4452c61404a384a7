"""The table of runs that `%distrain` shows."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.facts import Facts, brief, duration, facts
from distrain_nb.ui.lines import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.run.facts import Watched

HEADINGS = ("run", "name", "state", "where", "duration", "age", "last metrics")
SIGNS = {"succeeded": "✓", "failed": "✕", "cancelled": "■", "running": "●", "starting": "◐"}
METRICS_SHOWN = 3
NONE_YET = "no runs yet: put %%distrain -n 2 on top of a training cell"


@dataclass(frozen=True)
class RunsTable:
    """One row of text for each run; prints as text, and shows as a table in a notebook."""

    rows: tuple[tuple[str, ...], ...]
    states: tuple[str, ...]

    def __repr__(self) -> str:
        if not self.rows:
            return NONE_YET
        widths = [max(map(len, column)) for column in zip(HEADINGS, *self.rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (HEADINGS, *self.rows)
        )

    def _repr_html_(self) -> str:
        from distrain_nb.ui.document import style

        if not self.rows:
            return f"<p>{html.escape(NONE_YET)}</p>"
        head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
        body = "".join(map(_row_html, self.rows, self.states))
        return (
            f'{style()}<div class="distrain" style="overflow-x:auto"><table class="dn-table">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def runs_table(runs: Iterable[Watched]) -> RunsTable:
    """The runs with their state, place, times and last metrics, in the order given."""
    now = time.time()
    told = [(facts(run), Metrics(run.folder)) for run in runs]
    rows = tuple(_row(each, metrics, now) for each, metrics in told)
    return RunsTable(rows, tuple(each.state for each, _ in told))


def _row(each: Facts, metrics: Metrics, now: float) -> tuple[str, ...]:
    metrics.read()
    values = [f"{tag} {brief(value)}" for tag, value in metrics.last().items()]
    return (
        str(each.id),
        each.name,
        f"{SIGNS.get(each.state, '◌')} {each.state}",
        ", ".join(filter(None, (each.where, each.size))),
        duration(each.elapsed(now)),
        f"{duration(now - each.begin)} ago",
        "  ".join(values[:METRICS_SHOWN]) + (" …" if len(values) > METRICS_SHOWN else ""),
    )


def _row_html(row: tuple[str, ...], state: str) -> str:
    cells = [f"<td>{html.escape(cell)}</td>" for cell in row]
    cells[2] = f'<td class="dn-state">{html.escape(row[2])}</td>'
    return f'<tr data-state="{state}">{"".join(cells)}</tr>'
