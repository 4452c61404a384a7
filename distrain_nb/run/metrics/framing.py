"""Finds the records of a stretch of an event file.

A record is its length (8 bytes) and that number's checksum, the data, and the data's checksum
(`tensorflow/core/lib/io/record_writer.h`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from distrain_nb.worker.metrics.crc32c import masked

_HEADER = struct.Struct("<QI")
HEAD, FOOT = _HEADER.size, 4
# Bytes that may still become records, as a file that is written over a network can show zeros.
_WAITED_FOR = 1 << 20
# Longest data of a record that is found together with others, and where they are looked for.
_SHORT = 1024
_WINDOW = 1 << 18

Numbers = NDArray[np.int64]


@dataclass
class RecordPlaces:
    """The places of complete records: where their data begins, how long it is, the rest as in
    ParsedStretch."""

    starts: list[Numbers] = field(default_factory=list)
    lengths: list[Numbers] = field(default_factory=list)
    end: int = 0
    skipped: int = 0
    unreadable: bool = False

    def add(self, starts: Numbers, lengths: Numbers) -> None:
        self.starts.append(starts)
        self.lengths.append(lengths)
        self.end = int(starts[-1] + lengths[-1]) + FOOT

    def skip(self, end: int) -> None:
        self.skipped += end - self.end
        self.end = end


def find_records(buffer: bytes) -> RecordPlaces:
    """Return the whole records at the start of `buffer`: many at once where they are short."""
    record_places = RecordPlaces()
    chains = _Chains(buffer, 0)
    end = len(buffer)
    while (at := record_places.end) + HEAD + FOOT <= end:
        if at >= chains.end:
            chains = _Chains(buffer, at)
        starts, lengths = chains.at(at)
        if len(starts):
            record_places.add(starts, lengths)
            continue
        length, crc = _HEADER.unpack_from(buffer, at)
        if masked(crc32c(buffer[at : at + 8])) != crc:
            if (following := _next_header(buffer, at)) is not None:
                record_places.skip(following)
                continue
            if end - at > _WAITED_FOR:
                record_places.skip(end - HEAD)
            record_places.unreadable = True
            break
        if at + HEAD + length + FOOT > end:
            break
        record_places.add(np.array([at + HEAD]), np.array([length]))
    return record_places


class _Chains:
    """Short records, each of which begins where another ends, that begin from `begin` to `end`."""

    def __init__(self, buffer: bytes, begin: int) -> None:
        self.end = begin + _WINDOW
        heads, lengths = _short_headers(buffer, begin, self.end)
        ends = heads + (HEAD + FOOT) + lengths
        complete = ends <= len(buffer)
        self._heads, self._lengths = heads[complete], lengths[complete]
        self._breaks = np.flatnonzero(ends[complete][:-1] != self._heads[1:]) + 1

    def at(self, offset: int) -> tuple[Numbers, Numbers]:
        """Return starts and lengths of the records' data from that offset on, as far as they go."""
        first = int(np.searchsorted(self._heads, offset))
        if first == len(self._heads) or self._heads[first] != offset:
            return self._heads[:0], self._lengths[:0]
        following = int(np.searchsorted(self._breaks, first, "right"))
        last = self._breaks[following] if following < len(self._breaks) else len(self._heads)
        return self._heads[first:last] + HEAD, self._lengths[first:last]


def _short_headers(buffer: bytes, begin: int, end: int) -> tuple[Numbers, Numbers]:
    """Return the places at which a length of at most `_SHORT` has its checksum, and the lengths."""
    places = min(end, len(buffer) - HEAD + 1) - begin
    if places <= 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    zero = np.frombuffer(buffer, np.uint8, places + HEAD - 1, begin) == 0
    two = zero[:-1] & zero[1:]
    possible = two[2 : 2 + places] & two[4 : 4 + places] & two[6 : 6 + places]
    heads = np.flatnonzero(possible) + begin
    lengths = _numbers_at(buffer, heads, "<u2")
    heads, lengths = heads[lengths <= _SHORT], lengths[lengths <= _SHORT]
    right = _numbers_at(buffer, heads + 8, "<u4") == _header_checksums()[lengths]
    return heads[right], lengths[right].astype(np.int64)


def _numbers_at(buffer: bytes, places: Numbers, kind: str) -> NDArray[np.uint16 | np.uint32]:
    count = len(buffer) - np.dtype(kind).itemsize + 1
    everywhere: NDArray[np.uint16 | np.uint32] = np.ndarray((count,), kind, buffer, strides=(1,))
    return everywhere[places]


@cache
def _header_checksums() -> NDArray[np.uint32]:
    """Return the stored checksum of each short length."""
    lengths = (struct.pack("<Q", length) for length in range(_SHORT + 1))
    return np.array([masked(crc32c(length)) for length in lengths], np.uint32)


def _next_header(buffer: bytes, after: int) -> int | None:
    """Return where the next record begins: its length, below 4 GiB and never 0, has its
    checksum."""
    data = np.frombuffer(buffer, np.uint8)[after + 1 :]
    zero = data == 0
    zeros = zero[:-3] & zero[1:-2] & zero[2:-1] & zero[3:]
    for at in (np.flatnonzero(zeros[4:] & ~zeros[:-4]) + after + 1).tolist():
        if at + HEAD <= len(buffer):
            _, crc = _HEADER.unpack_from(buffer, at)
            if masked(crc32c(buffer[at : at + 8])) == crc:
                return int(at)
    return None
