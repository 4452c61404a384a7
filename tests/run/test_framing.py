"""Records that are found together are those that are found one by one."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from google_crc32c import value as crc32c

from distrain_nb.run.metrics import framing
from distrain_nb.run.metrics.framing import find_records
from distrain_nb.worker.metrics.crc32c import masked


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    checksums = (struct.pack("<I", masked(crc32c(each))) for each in (length, data))
    return length + next(checksums) + data + next(checksums)


def one_by_one(buffer: bytes) -> Iterator[tuple[int, int]]:
    """Start and length of the data of each record, up to what is none."""
    at = 0
    while at + 16 <= len(buffer):
        length, crc = struct.unpack_from("<QI", buffer, at)
        if masked(crc32c(buffer[at : at + 8])) != crc or at + 16 + length > len(buffer):
            return
        yield at + 12, length
        at += 16 + length


def data(chance: random.Random) -> bytes:
    """Of many lengths, some with what looks like records in it, or with nothing but zeros."""
    size = chance.choice([0, 1, 7, 24, 40, 40, 40, 255, 256, 1024, 1025, 5000])
    inner = record(chance.randbytes(chance.choice([3, 900]))) * 2
    return chance.choice([chance.randbytes(size), bytes(size), inner, inner + bytes(size)])


@pytest.mark.parametrize("seed", range(40))
def test_together_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(framing, "_WINDOW", chance.choice([1, 50, 3000, 1 << 20]))
    buffer = b"".join(record(data(chance)) for _ in range(chance.choice([0, 1, 60])))
    for end in (len(buffer), *(chance.randrange(len(buffer) + 1) for _ in range(40))):
        found = find_records(buffer[:end])
        starts, lengths = (
            np.concatenate([np.empty(0, int), *each]).tolist()
            for each in (found.starts, found.lengths)
        )
        expected = list(one_by_one(buffer[:end]))
        assert list(zip(starts, lengths, strict=True)) == expected
        assert found.end == (expected[-1][0] + expected[-1][1] + 4 if expected else 0)
        assert (found.skipped, found.unreadable) == (0, False)
