"""The end of a run's log, as far as a view keeps it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.log.reader import line_of
from distrain_nb.run.log.scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.run.log.reader import Line
    from distrain_nb.run.log.scan import LogRecords

KEPT_LINES = 2_000
LONGEST_SHOWN = 4_000


@dataclass(frozen=True)
class Batch:
    """Lines that came together: `first` is the number, from 0, of the first line here.

    `bars` are the lines that are still moving, one for each process and stream at most.
    """

    first: int
    lines: tuple[Line, ...]
    bars: tuple[Line, ...]

    def as_bytes(self) -> bytes:
        """Return one line of text for each: process, stream, seconds, text, parted by tabs."""
        rows = (f"{n.process}\t{n.stream}\t{n.time:.3f}\t{shown_text(n)}\n" for n in self.lines)
        return "".join(rows).encode("utf-8", "replace")


class Tail:
    """The last lines of a log. A moving line is kept apart until it stands still."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=KEPT_LINES)
        self._bars: dict[int, Line] = {}
        self.total = 0

    @classmethod
    def ending_with(cls, lines: Iterable[Line], bars: Iterable[Line], total: int) -> Tail:
        """Return the end of a log of `total` lines that stands still."""
        tail = cls()
        tail._lines.extend(lines)
        tail._bars = dict(enumerate(bars))
        tail.total = total
        return tail

    def add(self, records: bytes) -> Batch:
        """Read records of the log. Return what an up-to-date view must add: KEPT_LINES lines at
        most.

        `records` are whole records of the log as they are in its file; only those that are kept are
        read.
        """
        parsed = scan(records)
        offsets = parsed.offsets[~parsed.moving]
        shown = tuple(_line_at(records, offset) for offset in offsets[-KEPT_LINES:])
        self.total += len(offsets)
        self._lines.extend(shown)
        self._move_bars(records, parsed)
        return Batch(self.total - len(shown), shown, tuple(self._bars.values()))

    def _move_bars(self, records: bytes, parsed: LogRecords) -> None:
        """Set each writer's progress bar to its last record, or remove it if that is no bar."""
        _, from_end = np.unique(parsed.writers[::-1], return_index=True)
        for last in sorted(len(parsed.writers) - 1 - from_end):
            self._bars.pop(int(parsed.writers[last]), None)
            if parsed.moving[last]:
                self._bars[int(parsed.writers[last])] = _line_at(records, parsed.offsets[last])

    def all(self) -> Batch:
        """Return all that is kept, for a view that has seen nothing."""
        lines = tuple(self._lines)
        return Batch(self.total - len(lines), lines, tuple(self._bars.values()))

    def last(self, count: int, size: int) -> tuple[Line, ...]:
        """Return the last lines, bars as they were left: `count` of them, `size` characters at
        most."""
        chosen: list[Line] = []
        for line in reversed([*self._lines, *self._bars.values()]):
            size -= len(shown_text(line))
            if len(chosen) == count or size < 0:
                break
            chosen.append(line)
        return tuple(reversed(chosen))


def _line_at(records: bytes, offset: int) -> Line:
    return line_of(records[offset : records.index(b"\n", offset)])


def shown_text(line: Line) -> str:
    """Return the line's text, cut where it is too long for a screen."""
    if len(line.text) <= LONGEST_SHOWN:
        return line.text
    return f"{line.text[:LONGEST_SHOWN]}… ({len(line.text):,} characters)"
