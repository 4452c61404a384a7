"""Answers a page's questions about a run, by HTTP or through the kernel, with one function."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.errors import OptionError
from distrain_nb.run import displays
from distrain_nb.run.log.index import Filter
from distrain_nb.run.log.matching import SearchTerm
from distrain_nb.run.log.reader import traceback_ranges
from distrain_nb.run.log.search import first_error, search
from distrain_nb.run.pages.curves import curves
from distrain_nb.run.pages.drawn_charts import charts
from distrain_nb.run.pages.media import media
from distrain_nb.run.pages.query import flag, log_filter, number
from distrain_nb.run.streams import streams
from distrain_nb.run.summary import summary_of, tagged

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.run.log.index import LogIndex, Numbered
    from distrain_nb.run.pages.protocol import Answer, LineRow, LogAnswer
    from distrain_nb.run.pages.query import Query
    from distrain_nb.run.run import Run

WINDOW = 200
WINDOW_AT_MOST = 2_000
LONGEST_TRACEBACK = 200
LONGEST_TEXT = 20_000
ENDING_LINES = 30


def answer(run: Run, path: str, query: Query) -> Answer:
    """Answer a page's question with JSON values. Raises OptionError that names the bad part of the
    query."""
    if path not in _ANSWERS:
        raise OptionError(f"a run has no {path!r}; there are {', '.join(_ANSWERS)}")
    return _ANSWERS[path](run, query)


def _log(run: Run, query: Query) -> LogAnswer:
    status = run.status  # before the log: if the run has ended, all lines are there
    only = log_filter(query, status.processes)
    log = streams(run.folder).log
    total = log.update()
    rows = log.rows(only)
    first, beyond = _window(query, len(rows))
    return {
        "total": total,
        "rows": len(rows),
        "first": first,
        "end": status.state.final,
        "lines": [_row(line) for line in log.lines(rows[first:beyond])],
        "bars": [_row(bar) for bar in log.bars(only)],
    }


def _search(run: Run, query: Query) -> Answer:
    term = SearchTerm(query.get("text", ""), flag(query, "regex"), flag(query, "case"))
    if not term.text:
        raise OptionError("the text to look for is empty")
    near = number(query, "near", 0, 0)
    step = number(query, "step", 0, -1, 1)
    log, only = _chosen(run, query)
    return asdict(search(log, only, term, near, step))


def _ending(run: Run, query: Query) -> Answer:  # noqa: ARG001
    """Answer with what a document has of a run that has ended: its state, error and last lines."""
    summary = summary_of(run)
    log = streams(run.folder).log
    log.update()
    last = [line for _, line in log.lines(log.rows(Filter())[-ENDING_LINES:])]
    lines = [tagged(summary.labels, line) for line in last]
    parts = [summary.saved_line(time.time()), summary.note, *lines, summary.error]
    text = "\n".join(escapes.plain(cut_text(part)) for part in parts if part)
    return {"final": summary.final, "text": text}


def _tracebacks(run: Run, query: Query) -> Answer:
    log, only = _chosen(run, query)
    rows = log.rows(only)
    first, beyond = _window(query, len(rows))
    begin = max(0, first - LONGEST_TRACEBACK)
    around = log.lines(rows[begin : beyond + LONGEST_TRACEBACK])
    places = [
        (begin + a, begin + b) for a, b in traceback_ranges([numbered.line for numbered in around])
    ]
    return {"folds": [list(fold) for fold in places if fold[1] >= first and fold[0] < beyond]}


def _charts(run: Run, query: Query) -> Answer:
    end = run.status.state.final  # before the charts: if the run has ended, all points are there
    return charts(run.folder, query, end)


def _chosen(run: Run, query: Query) -> tuple[LogIndex, Filter]:
    """Return the run's log as far as it is written, and the lines of it that count."""
    only = log_filter(query, run.status.processes)
    log = streams(run.folder).log
    log.update()
    return log, only


def _window(query: Query, rows: int) -> tuple[int, int]:
    """Return the rows that are asked for: the first, and the one behind the last."""
    first = number(query, "first", 0)
    count = number(query, "count", WINDOW, 0, WINDOW_AT_MOST)
    first = min(first, rows) if first >= 0 else max(0, rows + first)
    return first, min(first + count, rows)


def _row(numbered: Numbered) -> LineRow:
    at, line = numbered
    return at, line.time, line.process, line.stream, line.moving, cut_text(line.text)


def cut_text(text: str) -> str:
    """Return the text, cut where it is too long for a page."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text) - LONGEST_TEXT:,} characters more)"


_ANSWERS: dict[str, Callable[[Run, Query], Answer]] = {
    "summary": lambda run, _: {**summary_of(run).as_json(), "now": time.time()},
    "log": _log,
    "search": _search,
    "first-error": lambda run, query: {"row": first_error(*_chosen(run, query))},
    "tracebacks": _tracebacks,
    "metrics": lambda run, query: curves(streams(run.folder).metrics, query),
    "charts": _charts,
    "media": lambda run, query: media(streams(run.folder).metrics, query),
    "display": lambda run, query: displays.display(run.folder, query),
    "ending": _ending,
    "times": lambda run, query: curves(streams(run.folder).times, query),
    "resources": lambda run, query: curves(streams(run.folder).resources, query),
}
