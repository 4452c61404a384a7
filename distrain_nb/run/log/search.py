"""Searching a log: all that is on disk, a stretch of it at a time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.errors import OptionError, shown
from distrain_nb.run.log import expression
from distrain_nb.run.log.reader import pieces
from distrain_nb.run.log.scan import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from distrain_nb.run.log.index import Filter, LogIndex

    Offsets = NDArray[np.int64]

STRETCH_BYTES = 64 << 20
EXPRESSION_S = 1.5
LONGEST_TERM = 1_000  # what compiling an expression costs grows with it

_ESCAPE = re.compile(expression.ESCAPE)
_TRACEBACKS = (re.compile(rb"Traceback \(most recent call last\)"),)
_ERRORS = tuple(
    re.compile(word)
    for word in (
        rb"ERROR(?<!\wERROR)\b",
        rb"FATAL(?<!\wFATAL)\b",
        rb"CRITICAL(?<!\wCRITICAL)\b",
        rb"Error:",
    )
)


@dataclass(frozen=True)
class SearchTerm:
    """A term that is searched for in lines: plain text, or a regular expression."""

    text: str
    regex: bool = False
    case: bool = False


@dataclass(frozen=True)
class Matches:
    """Rows that match, in order, and the last row that was searched; `done`: none is left."""

    rows: list[int]
    searched: int
    total: int
    done: bool


def search(log: LogIndex, only: Filter, term: SearchTerm, after: int, limit: int) -> Matches:
    """Return the matching rows behind the row `after`: as far as one stretch goes, `limit` at most.

    `total` counts those that were seen. Raises OptionError for an expression that can't be read,
    or takes too long, and for a text of more than 1,000 characters.
    """
    if len(term.text) > LONGEST_TERM:
        raise OptionError(
            f"text is {len(term.text):,} characters long; a search takes {LONGEST_TERM:,}"
        )
    pattern = _pattern(term)
    rows = log.rows(only)
    if after + 1 >= len(rows):
        if after < 0 and isinstance(pattern, _Expression):
            _tried(log.path, 0, 0, pattern)  # nothing to find, but whether it can be read
        return Matches([], after, 0, True)
    begin, end = _stretch(log, rows, after + 1)
    matching: list[int] = []
    reached = begin
    for stop, offsets in _matching(log, begin, end, pattern):
        reached = stop
        matching += _rows(log, rows, offsets).tolist()
        if len(matching) > limit:
            return Matches(matching[:limit], matching[limit - 1], len(matching), False)
    searched = int(np.searchsorted(log.offsets[rows], reached)) - 1
    return Matches(matching, searched, len(matching), searched + 1 == len(rows))


def first_error(log: LogIndex, only: Filter) -> int | None:
    """Return the row of the first traceback, or else of the first line that speaks of an error."""
    rows = log.rows(only)
    for patterns in (_TRACEBACKS, _ERRORS):
        for _, offsets in _plain(log, 0, log.end, patterns):
            rows_of_errors = _rows(log, rows, offsets)
            if len(rows_of_errors):
                return int(rows_of_errors[0])
    return None


@dataclass(frozen=True)
class _Expression:
    """An expression that only another process compiles and tries: either may take forever."""

    pattern: str
    flags: int


def _pattern(term: SearchTerm) -> re.Pattern[bytes] | _Expression:
    """Compile a pattern over bytes where that matches the same: a tab could match what stands
    before the text."""
    plain = not term.regex and "\t" not in term.text
    if plain and (term.case or term.text.isascii()):
        folded = term.text if term.case else term.text.lower()
        return re.compile(re.escape(folded.encode()), 0 if term.case else re.IGNORECASE)
    text = term.text if term.regex else re.escape(term.text)
    return _Expression(text, 0 if term.case else int(re.IGNORECASE))


def _stretch(log: LogIndex, rows: NDArray[np.uint32], first: int) -> tuple[int, int]:
    """Return the bytes from a row's record on, up to the end of a record."""
    offsets = log.offsets
    begin = int(offsets[rows[first]])
    beyond = int(np.searchsorted(offsets, begin + STRETCH_BYTES))
    return begin, int(offsets[beyond]) if beyond < len(offsets) else log.end


def _matching(
    log: LogIndex, begin: int, end: int, pattern: re.Pattern[bytes] | _Expression
) -> Iterator[tuple[int, Offsets]]:
    """Yield how far it has come, and where the matching records of that part begin."""
    if isinstance(pattern, _Expression):
        yield _tried(log.path, begin, end, pattern)
    else:
        yield from _plain(log, begin, end, (pattern,))


def _plain(
    log: LogIndex, begin: int, end: int, patterns: Sequence[re.Pattern[bytes]]
) -> Iterator[tuple[int, Offsets]]:
    with log.open() as file:
        for at, piece in pieces(file, begin, end):
            plain = _ESCAPE.sub(b"", piece) if b"\x1b" in piece else piece
            starts, begins = texts(plain)
            positions = np.sort(_concatenated([_positions(plain, pattern) for pattern in patterns]))
            record = np.searchsorted(starts, positions, side="right") - 1
            matching = np.unique(record[positions >= begins[record]])
            yield at + len(piece), texts(piece)[0][matching] + at


def _positions(piece: bytes, pattern: re.Pattern[bytes]) -> Offsets:
    if pattern.flags & re.IGNORECASE:
        piece, pattern = piece.lower(), re.compile(pattern.pattern)
    return np.array([match.start() for match in pattern.finditer(piece)], np.int64)


def _tried(path: Path, begin: int, end: int, pattern: _Expression) -> tuple[int, Offsets]:
    """Return where it stopped, and the records that match."""
    request = {
        "path": str(path),
        "begin": begin,
        "end": end,
        "expression": pattern.pattern,
        "flags": pattern.flags,
        "seconds": EXPRESSION_S,
    }
    program = [sys.executable, "-I", "-S", "-W", "ignore", expression.__file__]
    done = subprocess.run(program, input=json.dumps(request).encode(), capture_output=True)
    if done.returncode == -signal.SIGALRM:
        raise OptionError(
            f"regular expression {shown(pattern.pattern)} takes too long on this log: "
            "look for something simpler, without repetitions inside repetitions"
        )
    if done.returncode == expression.UNREADABLE:
        raise OptionError(f"regular expression {shown(pattern.pattern)}: {done.stderr.decode()}")
    done.check_returncode()
    answer = np.frombuffer(done.stdout, np.int64)
    return int(answer[0]), answer[1:]


def _rows(log: LogIndex, rows: NDArray[np.uint32], offsets: Offsets) -> Offsets:
    """Return the rows whose records begin at these offsets; other records are left out."""
    known_offsets = log.offsets[rows]
    at = np.searchsorted(known_offsets, offsets)
    within = at < len(known_offsets)
    at, offsets = at[within], offsets[within]
    row_numbers: Offsets = at[known_offsets[at] == offsets]
    return row_numbers


def _concatenated(pieces: list[Offsets]) -> Offsets:
    return np.concatenate([np.empty(0, np.int64), *pieces])
