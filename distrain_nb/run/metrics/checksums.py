"""The checksums of many records of an event file, checked at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from distrain_nb.run.metrics.framing import FOOT
from distrain_nb.worker.metrics.crc32c import TABLE

Rows = NDArray[np.uint8]


def checksums_match(rows: Rows, varying: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Check all rows against the checksums that they end with; elsewhere only `varying` differ.

    A CRC is linear: rows of one length differ in their checksums by the sum (XOR) of what each
    differing byte contributes, whatever the others are. So one row is checked whole, and of the
    others only the bytes that vary.
    """
    size = rows.shape[1] - FOOT
    first = rows[0]
    crc = np.full(len(rows), crc32c(first[:size].tobytes()), dtype=np.uint32)
    for index in varying.tolist():
        column = rows[:, index]
        if (column != first[index]).any():
            effects = _effects(size - 1 - index)
            crc ^= effects[column] ^ effects[first[index]]
    stored = rows[:, size:].copy().view("<u4")[:, 0]
    rotated = stored - np.uint32(0xA282EAD8)
    matches: NDArray[np.bool_] = ((rotated >> 17) | (rotated << 15)) == crc
    return matches


@lru_cache(maxsize=1024)
def _effects(following: int) -> NDArray[np.uint32]:
    """Return what each value of a byte adds to the checksum when `following` bytes follow it."""
    table = np.array(TABLE, dtype=np.uint32)
    effects: NDArray[np.uint32] = table.copy()
    for _ in range(following):
        effects = (effects >> 8) ^ table[effects & 0xFF]
    return effects
