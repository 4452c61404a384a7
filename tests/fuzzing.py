"""Inputs by chance: as many on every machine, and every round can be made again from its number."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Data = TypeVar("Data", str, bytes, tuple[bytes, ...])
QUICK_SHARE = 0.1  # of the rounds, in quick tests
AT_LEAST = 10

_share = 1.0


def be_quick() -> None:
    """From here on, before tests are collected: less by chance, and all that is named."""
    global _share
    _share = QUICK_SHARE


def several(count: int) -> int:
    """How many of that many examples are to be made: fewer in quick tests."""
    return max(round(count * _share), min(count, AT_LEAST))


def rounds(seed: int, count: int) -> Iterator[random.Random]:
    """A source of chance for each of `several(count)` rounds."""
    for number in range(several(count)):
        yield random.Random(1_000_000 * seed + number)


def mutated(chance: random.Random, seeds: Sequence[Data], pieces: Sequence[Data]) -> Data:
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
