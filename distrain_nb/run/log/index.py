"""The lines of a log by number: any window of a million of them, without reading the rest."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from distrain_nb.run.log.column import Column
from distrain_nb.run.log.reader import Line, line_of, pieces
from distrain_nb.run.log.scan import WRITERS, LogRecords, scan, writer
from distrain_nb.worker.files.folder import LOG_FILE

if TYPE_CHECKING:
    from numpy.typing import NDArray


FILTERS_KEPT = 4
COMPARED_BYTES = 4 << 10


@dataclass(frozen=True)
class Filter:
    """A filter of lines: those of some processes (None: all), of one stream (empty: both)."""

    processes: frozenset[int] | None = None
    stream: str = ""

    @property
    def is_all(self) -> bool:
        """Whether every line counts."""
        return self.processes is None and not self.stream

    def passes(self, writers: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Tell which of the writers pass."""
        passing = np.ones(len(writers), np.bool_)
        if self.processes is not None:
            passing &= np.isin(writers >> 1, list(self.processes))
        if self.stream:
            passing &= (writers & 1) == writer(0, self.stream)
        return passing


class Numbered(NamedTuple):
    """A line, and its number in the whole log, from 0."""

    number: int
    line: Line


class LogIndex:
    """The place of each line of a growing log: ten bytes a line, for any number of threads.

    A record that a later one has taken the place of (a progress bar that moved on) is no line,
    and has no number. Numbers stay as they are while the log grows.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG_FILE
        self._lock = threading.Lock()
        self.version = 0
        self._forget()

    def update(self) -> int:
        """Take in what has been written since the last call; gives the number of lines."""
        with self._lock:
            try:
                with self.path.open("rb") as log:
                    self._take(log)
            except FileNotFoundError:
                self._forget()
            return len(self._offsets)

    def rows(self, only: Filter) -> NDArray[np.uint32] | range:
        """Return the numbers of the lines that pass, in order."""
        if only.is_all:
            return range(len(self._offsets))
        with self._lock:
            count, column = self._rows.pop(only, (0, Column(np.uint32)))
            new = np.flatnonzero(only.passes(self._writers.values[count:])) + count
            column.extend(new.astype(np.uint32))
            self._rows[only] = len(self._offsets), column
            while len(self._rows) > FILTERS_KEPT:
                self._rows.popitem(last=False)
            return column.values

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Return where each line's record begins in the file."""
        return self._offsets.values

    @property
    def end(self) -> int:
        """How many bytes of the file have been taken in."""
        return self._end

    def lines(self, numbers: Sequence[int] | NDArray[np.uint32]) -> list[Numbered]:
        """Return the lines of these numbers."""
        offsets = self.offsets
        with self.open() as log:
            return [Numbered(int(n), _line_at(log, int(offsets[n]))) for n in numbers]

    def bars(self, only: Filter) -> list[Numbered]:
        """Return the lines that are still moving; they stand behind the last line."""
        with self._lock:
            count = len(self._offsets)
            moving = dict(self._moving)
        keep = only.passes(np.fromiter(moving, np.uint16))
        chosen = [offset for offset, passes in zip(moving.values(), keep, strict=True) if passes]
        with self.open() as log:
            return [Numbered(count, _line_at(log, offset)) for offset in sorted(chosen)]

    def open(self) -> BinaryIO:
        """Return the log's file, an empty one if there is none."""
        try:
            return self.path.open("rb")
        except FileNotFoundError:
            return BytesIO()

    def _forget(self) -> None:
        self.version += 1
        self._offsets = Column(np.int64)
        self._writers = Column(np.uint16)
        self._moving: dict[int, int] = {}
        self._rows: OrderedDict[Filter, tuple[int, Column[np.uint32]]] = OrderedDict()
        self._end = 0
        self._last = b""  # what stands before `_end`
        self._file = 0

    def _take(self, log: BinaryIO) -> None:
        about = os.fstat(log.fileno())
        if about.st_ino != self._file or not self._goes_on(log):
            self._forget()
            self._file = about.st_ino
        for begin, piece in pieces(log, self._end, about.st_size):
            self._add(begin, scan(piece))
            self._end = begin + len(piece)
            self._last = piece[-COMPARED_BYTES:]

    def _goes_on(self, log: BinaryIO) -> bool:
        """Return whether what was taken in still stands there: a carrier that goes on where another
        was killed cuts the log, and writes other lines in the place of those."""
        size = len(self._last)
        return os.pread(log.fileno(), size, self._end - size) == self._last

    def _add(self, begin: int, records: LogRecords) -> None:
        offsets = records.offsets + begin
        if self._moving or records.moving.any():
            self._move(records, offsets)
        self._offsets.extend(offsets[~records.moving])
        self._writers.extend(records.writers[~records.moving])

    def _move(self, records: LogRecords, offsets: NDArray[np.int64]) -> None:
        last = np.full(WRITERS, -1)
        last[records.writers] = np.arange(len(offsets))  # of several to one place the last stays
        for row in np.flatnonzero(last >= 0):
            self._moving.pop(int(row), None)
            if records.moving[last[row]]:
                self._moving[int(row)] = int(offsets[last[row]])


def _line_at(log: BinaryIO, offset: int) -> Line:
    log.seek(offset)
    return line_of(log.readline().removesuffix(b"\n"))
