"""Finds where the records of a log begin and of what kind they are, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PROCESSES = 1 << 15
WRITERS = 2 * PROCESSES
_DIGITS = len(str(PROCESSES - 1))
_NEWLINE, _TAB, _ZERO = b"\n\t0"
_STDERR, _STDOUT = b"eo"
_CAPITAL = 32  # what a capital letter lacks

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class LogRecords:
    """The records of a piece of a log; what is no record is left out.

    `offsets`: where each begins in the piece; `writers`: `writer(process, stream)` of each;
    `moving`: whether the next record of the same writer takes its place.
    """

    offsets: Numbers
    writers: NDArray[np.uint16]
    moving: NDArray[np.bool_]


def writer(process: int, stream: str) -> int:
    """Return the number that stands for one stream (`o` or `e`) of one process."""
    return 2 * process + (stream == "e")


def scan(piece: bytes) -> LogRecords:
    """Find the records of a piece of a log that ends with a line's end."""
    data = np.frombuffer(piece, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    first, second, third = _tabs(data, starts)
    process, sound = _numbers(data, first + 1, second)
    kind = data[np.minimum(second + 1, len(data) - 1)]
    small = kind | _CAPITAL
    sound &= (third < ends) & (third == second + 2) & (first > starts)
    sound &= (small == _STDOUT) | (small == _STDERR)
    writers = (2 * process + (small == _STDERR))[sound].astype(np.uint16)
    return LogRecords(starts[sound], writers, (kind != small)[sound])


def texts(piece: bytes) -> tuple[Numbers, Numbers]:
    """Return where each line of a piece of a log begins, and where the text in it does."""
    starts = line_starts(piece)
    return starts, _tabs(np.frombuffer(piece, np.uint8), starts)[2] + 1


def line_starts(piece: bytes) -> Numbers:
    """Return where each line of a piece of a log begins."""
    data = np.frombuffer(piece, np.uint8)
    return np.concatenate([[0], np.flatnonzero(data == _NEWLINE)[:-1] + 1])


def _tabs(data: NDArray[np.uint8], starts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the first three tabs from each start on; beyond the data where there are none."""
    tabs = np.flatnonzero(data == _TAB)
    at = np.searchsorted(tabs, starts)
    tabs = np.concatenate([tabs, np.full(3, len(data))])
    return tabs[at], tabs[at + 1], tabs[at + 2]


def _numbers(
    data: NDArray[np.uint8], begin: Numbers, end: Numbers
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the decimal numbers that stand there, and which of them are numbers of processes."""
    length = end - begin
    sound = (length > 0) & (length <= _DIGITS)
    total = np.zeros(len(begin), np.int64)
    for column in range(int(length[sound].max(initial=0))):
        within = sound & (column < length)
        digit = data[np.where(within, begin + column, 0)].astype(np.int64) - _ZERO
        sound &= ~within | ((digit >= 0) & (digit <= 9))
        total = np.where(within, 10 * total + digit, total)
    return total, sound & (total < PROCESSES)
