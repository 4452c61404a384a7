"""The scalars of a stretch of an event file, many records at a time.

A training run writes the same few events over and over: same length, same layout, other numbers.
So the layout is found once, and the numbers of all records that share it are taken out together.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from distrain_nb.run.metrics.checksums import checksums_match
from distrain_nb.run.metrics.framing import FOOT, find_records
from distrain_nb.run.metrics.protobuf import (
    VARINT,
    EventLayout,
    Malformed,
    layout_of,
    number,
    varint,
)
from distrain_nb.worker.metrics.crc32c import masked

POINT = np.dtype([("step", "<i8"), ("wall_time", "<f8"), ("value", "<f8")])
Points = NDArray[np.void]
Kinds: TypeAlias = NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64 | np.int64]
Rows = NDArray[np.uint8]

_WORTH_IT = 16
_MISSES = 4
_LONGEST_IN_BULK = 1024


@dataclass(frozen=True)
class NonScalar:
    """Something that is no scalar: `at` is where its record's data begins, `length` how long it is.

    `begin` .. `end` is its own message within the record; see `protobuf.NonScalarPlace` for `kind`.
    """

    tag: str
    kind: str
    step: int
    wall_time: float
    at: int
    length: int
    begin: int
    end: int


@dataclass
class ParsedStretch:
    """The contents of a stretch of a file.

    `consumed`: bytes of whole records; `points`: new points (dtype POINT) by tag, in order of the
    file; `non_scalars`: what is no scalar, by record; `restarts`: (record, step) where a restarted
    writer takes back what it had written from that step on; `corrupt`: records that were left out;
    `skipped`: bytes that are no records, up to the next one; `unreadable`: what begins at
    `consumed` is none either, as far as the stretch goes.
    """

    consumed: int = 0
    skipped: int = 0
    unreadable: bool = False
    corrupt: int = 0
    points: dict[str, Points] = field(default_factory=dict)
    restarts: list[tuple[int, int]] = field(default_factory=list)
    non_scalars: list[tuple[int, NonScalar]] = field(default_factory=list)


def read_stretch(buffer: bytes) -> ParsedStretch:
    """Parse the whole records at the start of `buffer`."""
    records = find_records(buffer)
    none = np.empty(0, np.int64)
    starts, lengths = (np.concatenate([none, *e]) for e in (records.starts, records.lengths))
    parser = _Parser(buffer, starts, lengths)
    parser.parse()
    series = {tag: _in_order(pieces, parser.restarts) for tag, pieces in parser.pieces.items()}
    appeared = sorted(
        (tag for tag in series if len(series[tag][0])), key=lambda tag: series[tag][0][0]
    )
    return ParsedStretch(
        records.end,
        records.skipped,
        records.unreadable,
        parser.corrupt,
        {tag: series[tag][1] for tag in appeared},
        parser.restarts,
        parser.non_scalars,
    )


Piece = tuple[NDArray[np.int64], Points]


class _Parser:
    """Collects, by tag, pieces of (record numbers, points)."""

    def __init__(
        self, buffer: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> None:
        self._buffer = buffer
        self._starts = starts
        self._lengths = lengths
        self._singles: dict[str, list[tuple[int, tuple[int, float, float]]]] = {}
        self.pieces: dict[str, list[Piece]] = {}
        self.restarts: list[tuple[int, int]] = []
        self.non_scalars: list[tuple[int, NonScalar]] = []
        self.corrupt = 0

    def parse(self) -> None:
        order = np.argsort(self._lengths, kind="stable")
        edges = np.flatnonzero(np.diff(self._lengths[order])) + 1
        for group in np.split(order, edges):
            self._parse_group(group)
        self.restarts.sort()
        self.non_scalars.sort(key=lambda entry: entry[0])
        for tag, singles in self._singles.items():
            singles.sort(key=lambda single: single[0])
            records = np.array([record for record, _ in singles], dtype=np.int64)
            points = np.array([point for _, point in singles], dtype=POINT)
            self.pieces.setdefault(tag, []).append((records, points))

    def _parse_group(self, group: NDArray[np.int64]) -> None:
        """Parse records of one length: in bulk while many share a layout, else one by one."""
        misses = 0
        while len(group) >= _WORTH_IT and misses < _MISSES:
            first = int(group[0])
            layout = self._layout(first)
            if layout is None or not _readable_in_bulk(layout, int(self._lengths[first])):
                self._parse_one(first)
                group = group[1:]
                misses += 1
                continue
            rows = self._rows(group)
            alike = _alike(rows, layout)
            misses += int(alike.sum()) < _WORTH_IT
            self._parse_bulk(group[alike], rows[alike], layout)
            group = group[~alike]
        for record in group.tolist():
            self._parse_one(record)

    def _data(self, record: int) -> bytes:
        start = self._starts[record]
        return self._buffer[start : start + self._lengths[record]]

    def _rows(self, group: NDArray[np.int64]) -> Rows:
        """Return the data of records of one length, each followed by its stored checksum."""
        size = int(self._lengths[group[0]]) + FOOT
        places = len(self._buffer) - size + 1
        windows: NDArray[np.void] = np.ndarray((places,), f"V{size}", self._buffer, strides=(1,))
        return windows[self._starts[group]].view(np.uint8).reshape(len(group), size)

    def _layout(self, record: int) -> EventLayout | None:
        try:
            return layout_of(self._data(record))
        except Malformed:
            return None

    def _parse_one(self, record: int) -> None:
        layout = self._layout(record)
        data = self._data(record)
        # An image, a graph: its checksum would cost too much here, and is compared when it's shown.
        unchecked = layout is not None and not layout.tells and len(data) > _LONGEST_IN_BULK
        if layout is None or not (unchecked or self._is_whole(record, data)):
            self.corrupt += 1
            return
        step = varint(data, layout.step) if layout.step else 0
        wall_time = struct.unpack("<d", data[layout.wall_time])[0] if layout.wall_time else 0.0
        if layout.restarts:
            self.restarts.append((record, step))
        for slot in layout.slots:
            point = (step, wall_time, number(data, slot))
            self._singles.setdefault(_text(data[slot.tag]), []).append((record, point))
        where = (int(self._starts[record]), len(data))
        for item in layout.items:
            within = (item.span.start, item.span.stop)
            non_scalar = NonScalar(
                _text(data[item.tag]), item.kind, step, wall_time, *where, *within
            )
            self.non_scalars.append((record, non_scalar))

    def _is_whole(self, record: int, data: bytes) -> bool:
        foot = self._starts[record] + len(data)
        stored = int.from_bytes(self._buffer[foot : foot + FOOT], "little")
        return bool(masked(crc32c(data)) == stored)

    def _parse_bulk(self, group: NDArray[np.int64], rows: Rows, layout: EventLayout) -> None:
        intact = checksums_match(rows, _varying(layout))
        if not intact.all():
            self.corrupt += int((~intact).sum())
            group, rows = group[intact], rows[intact]
        if not len(group):
            return
        points = np.zeros(len(group), dtype=POINT)
        if layout.step:
            points["step"] = _varints(rows[:, layout.step])
        if layout.wall_time:
            _set(points, "wall_time", rows[:, layout.wall_time], "<f8")
        for slot in layout.slots:
            values = points.copy()
            _set(values, "value", rows[:, slot.value], slot.kind)
            for tag, members in _by_tag(rows[:, slot.tag]):
                self.pieces.setdefault(tag, []).append((group[members], values[members]))


def _readable_in_bulk(layout: EventLayout, length: int) -> bool:
    fixed_width = all(slot.kind != VARINT for slot in layout.slots)
    plain = bool(layout.slots) and not layout.items and not layout.restarts
    return plain and fixed_width and length <= _LONGEST_IN_BULK


def _alike(rows: Rows, layout: EventLayout) -> NDArray[np.bool_]:
    """Tell which rows have the same fields at the same places as the first."""
    varying = _varying(layout)
    fixed = np.setdiff1d(np.arange(rows.shape[1] - FOOT), varying)
    alike: NDArray[np.bool_] = (rows[:, fixed] == rows[0, fixed]).all(axis=1)
    if layout.step:
        step = rows[:, layout.step]
        alike &= (step[:, :-1] >= 0x80).all(axis=1) & (step[:, -1] < 0x80)
    return alike


def _varying(layout: EventLayout) -> NDArray[np.int64]:
    """Return the places of the bytes that differ between events of one layout."""
    parts = [layout.wall_time, layout.step]
    parts += [part for slot in layout.slots for part in (slot.tag, slot.value, slot.rounded)]
    return np.concatenate([np.arange(part.start, part.stop) for part in parts if part])


def _varints(columns: Rows) -> NDArray[np.int64]:
    value = np.zeros(len(columns), dtype=np.uint64)
    for index in range(columns.shape[1]):
        value |= (columns[:, index].astype(np.uint64) & np.uint64(0x7F)) << np.uint64(7 * index)
    return value.view(np.int64)


def _set(points: Points, name: str, columns: Rows, kind: str) -> None:
    """Set a field of the points from columns of bytes, read as numbers of that kind."""
    points[name] = np.ascontiguousarray(columns).view(kind)[:, 0]


def _by_tag(columns: Rows) -> list[tuple[str, NDArray[np.int64] | slice[None, None, None]]]:
    """Return (tag, the rows that have it), for tags of one length."""
    varying = np.flatnonzero((columns != columns[0]).any(axis=0))
    if not len(varying):
        return [(_text(columns[0].tobytes()), slice(None))]
    kinds = _kinds(columns, varying)
    order = np.argsort(kinds, kind="stable")
    edges = np.flatnonzero(np.diff(kinds[order])) + 1
    return [(_text(columns[rows[0]].tobytes()), rows) for rows in np.split(order, edges)]


def _kinds(columns: Rows, varying: NDArray[np.int64]) -> Kinds:
    """Return a number for each row, the same for rows that are the same: they differ where they
    vary."""
    size = next((size for size in (1, 2, 4, 8) if len(varying) <= size), None)
    if size is None:
        tags = np.ascontiguousarray(columns).view(f"S{columns.shape[1]}")[:, 0]
        numbers: dict[bytes, int] = {}
        return np.array([numbers.setdefault(tag, len(numbers)) for tag in tags.tolist()])
    packed = np.zeros((len(columns), size), np.uint8)
    packed[:, : len(varying)] = columns[:, varying]
    kinds: Kinds = packed.view(f"<u{size}")[:, 0]
    return kinds


def _in_order(pieces: list[Piece], restarts: list[tuple[int, int]]) -> Piece:
    """Return one tag's points in order of the file, less those that a restart takes back."""
    records, points = pieces[0]  # in order as it is: with very many tags there is no more of each
    if len(pieces) > 1:
        records = np.concatenate([records for records, _ in pieces])
        points = np.concatenate([points for _, points in pieces])
        order = np.argsort(records, kind="stable")
        records, points = records[order], points[order]
    for record, step in restarts:
        remaining = (records > record) | (points["step"] < step)
        records, points = records[remaining], points[remaining]
    return records, points


def _text(tag: bytes) -> str:
    return tag.decode("utf-8", "replace")
