"""Inputs by chance, within a budget of seconds: every round can be made again from its number."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, AnyStr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECONDS = 3.0
AT_LEAST = 20


def rounds(seed: int, share: float = 1.0) -> Iterator[random.Random]:
    """A source of chance for each round, for a share of the time; a few rounds on the slowest
    machine too."""
    end, number = time.monotonic() + share * SECONDS, 0
    while number < AT_LEAST or time.monotonic() < end:
        yield random.Random(1_000_000 * seed + number)
        number += 1


def mutated(chance: random.Random, seeds: Sequence[AnyStr], pieces: Sequence[AnyStr]) -> AnyStr:
    """One of the seeds with some of it left out, repeated, moved, or replaced by `pieces`."""
    made = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        start, end = sorted(chance.randrange(len(made) + 1) for _ in range(2))
        if chance.random() < 0.7:
            end = min(end, start + chance.choice((0, 1, 2, 8)))
        other = chance.choice(seeds)
        at = chance.randrange(len(other) + 1)
        instead = chance.choice(
            (made[:0], chance.choice(pieces), made[start:end] * 2, other[at : at + 40])
        )
        made = made[:start] + instead + made[end:]
    return made


def flipped(chance: random.Random, data: bytes, most: int = 4) -> bytes:
    """The bytes with a few of them changed."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, most + 1)):
        at = chance.randrange(len(changed))
        changed[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(changed)
