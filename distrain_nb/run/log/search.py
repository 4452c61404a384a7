"""Search in a whole log on disk, from the visible row on. Each call searches for a slice of
time."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from distrain_nb.run.log.column import Column, Scalar
from distrain_nb.run.log.index import Filter, LogIndex
from distrain_nb.run.log.matching import Offsets, Pattern, PlainText, SearchTerm, pattern_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


SLICE_S = 0.1
SEARCHES_KEPT = 4
_LAST_ROW = int(np.iinfo(np.uint32).max)

_TRACEBACK = PlainText(b"Traceback (most recent call last)")
_ERRORS = (
    PlainText(b"ERROR", around=re.compile(rb"ERROR(?<!\wERROR)\b")),
    PlainText(b"FATAL", around=re.compile(rb"FATAL(?<!\wFATAL)\b")),
    PlainText(b"CRITICAL", around=re.compile(rb"CRITICAL(?<!\wCRITICAL)\b")),
    PlainText(b"Error:"),
)
_searches: WeakKeyDictionary[
    LogIndex, tuple[int, OrderedDict[tuple[Filter, SearchTerm], LogSearch]]
]
_searches = WeakKeyDictionary()
_keeping = threading.Lock()


@dataclass(frozen=True)
class SearchProgress:
    """How far a search has come.

    `total` counts the matching rows so far. `searched` is the share of the log, from 0 to 1. `row`
    is the match that was asked for, and `place` its index among the matches. Without one, they are
    None and -1.
    """

    total: int
    searched: float
    done: bool
    row: int | None
    place: int


class LogSearch:
    """The rows of a log that match. Any number of threads may use it.

    A search begins at a row, goes to the end of the log, and then from the beginning to that row.
    So the next match is known early. If the log has grown, the search goes on there. It keeps no
    reference to the log: a stored search must not hold a log's index in memory.
    """

    def __init__(self, log: LogIndex, only: Filter, term: SearchTerm, first: int) -> None:
        """Begin at the row `first` of those that pass. Raises OptionError for a text that is too
        long."""
        self._only = only
        self._pattern: Pattern = pattern_of(term)
        self._lock = threading.Lock()
        rows = log.rows(only)
        self._start = int(log.offsets[rows[first]]) if 0 <= first < len(rows) else 0
        self._later, self._earlier = _Region(self._start), _Region(0)
        self._is_tried = False

    def advance(self, log: LogIndex, seconds: float) -> None:
        """Continue the search for some time.

        Raises OptionError for an expression that can't be read, or takes too long.
        """
        until = time.monotonic() + seconds
        with self._lock:
            if not self._is_tried:  # an empty log has no match, but the expression may be wrong
                next(iter(self._pattern.find(log, 0, 0)), None)
                self._is_tried = True
            end = log.end
            self._later.advance(self._pattern, log, self._only, end, until)
            if self._later.at >= end:
                self._earlier.advance(self._pattern, log, self._only, self._start, until)

    def progress(self, log: LogIndex, near: int, step: int) -> SearchProgress:
        """Return the progress, with one match.

        That is the match at or after the row `near` (`step` 0), the next one (1) or the one before
        (-1). The first match follows the last.
        """
        with self._lock:
            earlier, later = self._earlier.rows.values, self._later.rows.values
            remaining = (log.end - self._later.at) + (self._start - self._earlier.at)
        total = len(earlier) + len(later)
        place = _before(earlier, near, step) + _before(later, near, step)
        place = (place + min(step, 0)) % total if total else -1
        behind = place - len(earlier)
        row = int(later[behind] if behind >= 0 else earlier[place]) if total else None
        if step == 0 and remaining and (row is None or row < near):
            row, place = None, -1  # a later match may be nearer
        searched = 1 - remaining / log.end if log.end else 1.0
        return SearchProgress(total, searched, remaining == 0, row, place)


class _Region:
    """A part of the log that is searched in order. `at` is the position reached."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.rows = Column(np.uint32)

    def advance(
        self, pattern: Pattern, log: LogIndex, only: Filter, end: int, until: float
    ) -> None:
        """Search up to `end`, or until that time, but at least one piece of the log."""
        if self.at >= end:
            return
        for at, offsets in pattern.find(log, self.at, end):
            self.at = at
            if len(offsets):
                self.rows.extend(_rows(log, only, offsets))
            if time.monotonic() >= until:
                return
        self.at = end  # the rest was cut off meanwhile


def search(
    log: LogIndex, only: Filter, term: SearchTerm, near: int, step: int = 0
) -> SearchProgress:
    """Continue a search for a tenth of a second, and return its progress.

    `near` and `step` are those of `LogSearch.progress`. A new search begins at `near`. Raises
    OptionError for an expression that can't be read or takes too long, and for a text of more than
    1,000 characters.
    """
    with _keeping:
        version, searches = _searches.get(log, (log.version, OrderedDict()))
        if version != log.version:  # the log was cut: its rows are different lines now
            searches = OrderedDict()
        key = (only, term)
        log_search = searches.pop(key, None) or LogSearch(log, only, term, near)
        searches[key] = log_search
        while len(searches) > SEARCHES_KEPT:
            searches.popitem(last=False)
        _searches[log] = log.version, searches
    log_search.advance(log, SLICE_S)
    return log_search.progress(log, near, step)


def first_error(log: LogIndex, only: Filter) -> int | None:
    """Return the row of the first traceback, or else of the first line that mentions an error."""
    traceback = _first(log, only, _TRACEBACK)
    if traceback is not None:
        return traceback
    errors = (_first(log, only, literal) for literal in _ERRORS)
    return min((row for row in errors if row is not None), default=None)


def _first(log: LogIndex, only: Filter, literal: PlainText) -> int | None:
    for _, offsets in literal.find(log, 0, log.end):
        if len(offsets) and len(rows := _rows(log, only, offsets)):
            return int(rows[0])
    return None


def _rows(log: LogIndex, only: Filter, offsets: Offsets) -> NDArray[np.uint32]:
    """Return the rows whose records begin at these offsets. Other records, such as those that a
    progress bar has overwritten, are left out."""
    numbers = _places(log.offsets, offsets)
    return numbers if only.is_all else _places(np.asarray(log.rows(only), np.uint32), numbers)


def _before(rows: NDArray[np.uint32], near: int, step: int) -> int:
    """Return how many rows come before `near`; with a step, `near` itself counts too."""
    return int(rows.searchsorted(np.uint32(min(near, _LAST_ROW)), "right" if step > 0 else "left"))


def _places(values: NDArray[Scalar], some: NDArray[Scalar]) -> NDArray[np.uint32]:
    """Return the indices of these values among sorted values; missing ones are left out."""
    at = np.searchsorted(values, some)
    within = at < len(values)
    at, some = at[within], some[within]
    there: NDArray[np.uint32] = at[values[at] == some].astype(np.uint32)
    return there
