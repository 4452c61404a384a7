"""The format of TensorBoard event files: records of events, whose numbers are float32 where that is
exact."""

from __future__ import annotations

import struct
from typing import List, Mapping

from distrain_nb.worker.metrics.crc32c import crc32c, masked

FILE_VERSION = b"brain.Event:2"
# A field of our own in Summary.Value, which other readers step over: the number as float64, where
# `simple_value`, a float32, has lost some of it.
EXACT_FIELD = 50064


def record(data: bytes) -> bytes:
    """Return an event as it stands in a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", masked(crc32c(length))),
            data,
            struct.pack("<I", masked(crc32c(data))),
        ]
    )


def first_event(wall_time: float) -> bytes:
    """Return the event with which a file begins."""
    return _wall_time(wall_time) + _bytes_field(3, FILE_VERSION)


def event(wall_time: float, step: int, numbers: Mapping[str, float]) -> bytes:
    """Return numbers of one step, at that time in seconds since the epoch."""
    values: List[bytes] = [
        _bytes_field(1, _bytes_field(1, tag.encode("utf-8", "replace")) + _scalar(number))
        for tag, number in numbers.items()
    ]
    return (
        _wall_time(wall_time)
        + b"\x10"
        + _varint(step & 0xFFFFFFFFFFFFFFFF)
        + _bytes_field(5, b"".join(values))
    )


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def _scalar(number: float) -> bytes:
    try:
        short = struct.pack("<f", number)
    except OverflowError:
        short = struct.pack("<f", float("inf") if number > 0 else float("-inf"))
    if number != number or struct.unpack("<f", short)[0] == number:
        return b"\x15" + short
    return b"\x15" + short + _varint(EXACT_FIELD << 3 | 1) + struct.pack("<d", number)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
