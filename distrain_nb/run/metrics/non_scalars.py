"""Values of event files that are no scalars: where they are, to be read when somebody looks at
them.

Of each tag as many pieces are remembered as a reader can step through; of more, every second one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from google_crc32c import value as crc32c

from distrain_nb.worker.metrics.crc32c import masked

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import NonScalar, ParsedStretch

MOST_PIECES = 1_000
MOST_KEYS = 1_000
_FOOT = 4


class Label(NamedTuple):
    """The name of a row of pieces; `kind` is `histogram`, `image`, `text`, `hparams`, …"""

    series: str
    tag: str
    kind: str


class Corrupt(ValueError):
    """The file does not have what was written."""


@dataclass(frozen=True)
class SummaryValue:
    """One value: its message is `begin` .. `end` of the record whose data is at `at`."""

    step: int
    wall_time: float
    path: Path
    at: int
    length: int
    begin: int
    end: int

    def read(self) -> bytes:
        """Read the value's message. Raises Corrupt where its checksum differs, OSError without the
        file."""
        with self.path.open("rb") as file:
            record = os.pread(file.fileno(), self.length + _FOOT, self.at)
        data, foot = record[: self.length], record[self.length :]
        if masked(crc32c(data)) != int.from_bytes(foot, "little"):
            raise Corrupt(f"{self.path.name} is corrupt at byte {self.at}")
        return data[self.begin : self.end]


class NonScalars:
    """Rows of pieces in order of arrival.

    `written` counts those of each row that were seen, `seen` all.
    """

    def __init__(self) -> None:
        self.rows: dict[Label, list[SummaryValue]] = {}
        self.written: dict[Label, int] = {}
        self.count = 0
        self.left_out = 0  # pieces of tags beyond the first MOST_KEYS
        self._kinds: dict[tuple[str, str], str] = {}

    def add(self, series: str, path: Path, base: int, stretch: ParsedStretch) -> None:
        """Note what the stretch has, which stands in the file from `base` on."""
        restarts = list(stretch.restarts)
        for record, non_scalar in stretch.non_scalars:
            while restarts and restarts[0][0] < record:
                self._take_back(series, restarts.pop(0)[1])
            self._put(series, path, base, non_scalar)
        for _, step in restarts:
            self._take_back(series, step)

    def _put(self, series: str, path: Path, base: int, value: NonScalar) -> None:
        # TensorFlow's readers need the kind of a tensor only with the first of its tag.
        self.count += 1
        kind = value.kind
        if kind == "tensor":
            kind = self._kinds.get((series, value.tag), kind)
        label = Label(series, value.tag, kind)
        if label not in self.rows and len(self.rows) >= MOST_KEYS:
            self.left_out += 1
            return
        self._kinds.setdefault((series, value.tag), kind)
        row = self.rows.setdefault(label, [])
        at = base + value.at
        row.append(
            SummaryValue(
                value.step,
                value.wall_time,
                path,
                at,
                value.length,
                value.begin,
                value.end,
            )
        )
        self.written[label] = self.written.get(label, 0) + 1
        if len(row) >= 2 * MOST_PIECES:
            del row[1:-1:2]

    def _take_back(self, series: str, step: int) -> None:
        for label, row in self.rows.items():
            if label.series == series:
                row[:] = [piece for piece in row if piece.step < step]
