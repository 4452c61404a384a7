"""Reading the log of a run while it is being written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import parse

READ_AT_MOST = 8 << 20
# malloc maps larger arrays anew each time, page by page: numpy takes three times as long on them.
PIECE_BYTES = 1 << 17
HEAD = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Line:
    """One line of the log.

    `time` is in seconds since the epoch, `process` the index of who wrote it, `stream` is `o` or
    `e`. A moving line (a progress bar) is replaced by the next of the same process and stream.
    """

    time: float
    process: int
    stream: str
    moving: bool
    text: str


class LogReader:
    """Gives each line of a run's log once, as far as it has been written.

    `offset` is where the next read starts, in bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG_FILE
        self.offset = 0

    def read(self) -> list[Line]:
        """Return the whole lines that have come since the last call, 8 MiB of them at most."""
        return [line_of(record) for record in self.records().split(b"\n")[:-1]]

    def records(self) -> bytes:
        """Return the records as they are in the file: reading a flood line by line takes long."""
        try:
            with self._path.open("rb") as log:
                log.seek(self.offset)
                data = log.read(READ_AT_MOST)
        except FileNotFoundError:
            return b""
        complete = data[: data.rfind(b"\n") + 1]
        self.offset += len(complete)
        return complete

    def __iter__(self) -> Iterator[Line]:
        """Yield all lines up to what is on disk now."""
        while lines := self.read():
            yield from lines


def pieces(log: BinaryIO, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole records of a log's file, some 100 kB at a time, and where each piece begins."""
    for at, piece, size in buffers(log, begin, end):
        yield at, bytes(memoryview(piece)[:size])


def buffers(log: BinaryIO, begin: int, end: int) -> Iterator[tuple[int, bytearray, int]]:
    """Yield where a piece begins, a buffer, and how many of its bytes are whole records.

    The next piece is read into the same buffer, unless a record is longer than that.
    """
    buffer = bytearray(PIECE_BYTES)
    while begin < end:
        log.seek(begin)
        count = log.readinto(memoryview(buffer)[: end - begin])  # type: ignore[attr-defined]
        size = buffer.rfind(b"\n", 0, count) + 1
        if size:
            yield begin, buffer, size
        elif count < len(buffer):
            return
        else:
            buffer = bytearray(2 * len(buffer))
        begin += size


def final_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with each progress bar as it was left: what a terminal would show at the
    end."""
    shown: list[Line | None] = []
    moving: dict[tuple[int, str], int] = {}
    for line in lines:
        key = (line.process, line.stream)
        before = moving.pop(key, None)
        if before is not None:
            shown[before] = None
        if line.moving:
            moving[key] = len(shown)
        shown.append(line)
    return [line for line in shown if line is not None]


def line_of(record: bytes) -> Line:
    """Return the line of a record, without its line end; what is none is the text of a line of time
    0."""
    try:
        time, process, kind, text = parse(record)
    except ValueError:
        return Line(0.0, 0, "o", False, record.decode("utf-8", "replace"))
    return Line(time if math.isfinite(time) else 0.0, process, kind.lower(), kind.isupper(), text)


def traceback_ranges(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each traceback, up to the line that names the
    exception.

    One that another process's lines part is given as far as it stands in one piece.
    """
    at = 0
    while at < len(lines):
        if HEAD not in lines[at].text:
            at += 1
            continue
        last = _last(lines, at)
        if last > at:
            yield at, last
        at = last + 1


def _last(lines: Sequence[Line], head: int) -> int:
    """Return the index of a traceback's last line, which names the exception. In a group all lines
    but that one are indented."""
    indented = lines[head].text[:1].isspace()
    for index in range(head + 1, len(lines)):
        line = lines[index]
        if (line.process, line.stream) != (lines[head].process, lines[head].stream):
            return index - 1
        if HEAD in line.text:
            return index - 1
        if not line.text[:1].isspace():
            return index - 1 if indented else index
    return len(lines) - 1
