"""What a page asks about a run, by HTTP or through the kernel: one function answers both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.run.facts import facts
from distrain_nb.run.query import log_filter, whole
from distrain_nb.run.streams import streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.run.index import Numbered
    from distrain_nb.run.query import Query
    from distrain_nb.run.run import Run

Answer = dict[str, Any]

WINDOW = 200
WINDOW_AT_MOST = 2_000
LONGEST_TEXT = 20_000


def answer(run: Run, path: str, query: Query) -> Answer:
    """What the page asked, as JSON values. Raises OptionError naming what is wrong in the query."""
    if path not in _ANSWERS:
        raise OptionError(f"a run has no {path!r}; there are {', '.join(_ANSWERS)}")
    return _ANSWERS[path](run, query)


def _facts(run: Run, query: Query) -> Answer:  # noqa: ARG001
    return {**facts(run).as_json(), "now": time.time()}


def _log(run: Run, query: Query) -> Answer:
    first = whole(query, "first", 0)
    count = whole(query, "count", WINDOW, 0, WINDOW_AT_MOST)
    status = run.status  # before the log: if the run has ended, all lines are there
    only = log_filter(query, status.processes)
    log = streams(run.folder).log
    total = log.update()
    rows = log.rows(only)
    first = min(first, len(rows)) if first >= 0 else max(0, len(rows) + first)
    return {
        "total": total,
        "rows": len(rows),
        "first": first,
        "end": status.state.final,
        "lines": [_as_json(each) for each in log.lines(rows[first : first + count])],
        "bars": [_as_json(each) for each in log.bars(only)],
    }


def _as_json(numbered: Numbered) -> list[Any]:
    number, line = numbered
    return [number, line.time, line.process, line.stream, line.moving, shortened(line.text)]


def shortened(text: str) -> str:
    """The text, cut where it is too long for a page."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text) - LONGEST_TEXT:,} characters more)"


_ANSWERS: dict[str, Callable[[Run, Query], Answer]] = {
    "facts": _facts,
    "log": _log,
}
