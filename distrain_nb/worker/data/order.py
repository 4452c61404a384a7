"""The order in which ranks read samples, computed from numbers that all ranks know.

The blocks of an epoch stand in a line, shuffled by the seed. Each rank has a part of the line, cut
between samples, and each of its workers ("lanes") a part of that. Batch `i` of a rank comes from
lane `i % lanes`, as a DataLoader asks its workers in turn.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

WINDOW = 8  # blocks of a lane whose samples are shuffled together
FIRST_WINDOW = 2  # … at the beginning, whose samples nobody can have before all blocks are here


class BlockPart(NamedTuple):
    """Samples `first` to `last`, exclusive, of a block, by its number."""

    block: int
    first: int
    last: int


class Division(NamedTuple):
    """The numbers of ranks and lanes, the batch size, and whether all batches are full."""

    ranks: int
    lanes: int
    batch_size: int
    drop_last: bool

    def batches(self, samples: int) -> int:
        """Return how many batches each rank has. Raises ValueError where ranks can't have equally
        many."""
        together = self.ranks * self.batch_size
        count = samples // together if self.drop_last else -(-samples // together)
        if not count or samples // self.ranks < (1 if self.drop_last else count):
            way_out = "drop_last=True" if samples >= together else "smaller batches, or fewer ranks"
            raise ValueError(
                f"{samples} samples in batches of {self.batch_size} can't be divided among "
                f"{self.ranks} ranks so that each has equally many batches: take {way_out}"
            )
        return count


def lane_of(
    counts: Sequence[int], division: Division, rank: int, lane: int, seed: str
) -> Tuple[List[BlockPart], List[int]]:
    """Return the pieces that a lane of a rank reads, and the sizes of its batches.

    `counts` are the samples of each block. The line of blocks is shuffled by `seed`, unless that
    is empty.
    """
    line = list(range(len(counts)))
    if seed:
        Random(seed).shuffle(line)
    total = sum(counts)
    batches = division.batches(total)
    if division.drop_last:
        size = batches * division.batch_size
        start, end = rank * size, (rank + 1) * size
    else:
        start, end = (total * index // division.ranks for index in (rank, rank + 1))
    sizes = _sizes(end - start, division.batch_size, batches)
    start += sum(sum(sizes[index :: division.lanes]) for index in range(lane))
    batch_sizes = sizes[lane :: division.lanes]
    return _cut(line, counts, start, start + sum(batch_sizes)), batch_sizes


def _sizes(samples: int, batch_size: int, batches: int) -> List[int]:
    """Return the sizes of batches: full ones and a smaller last one, or two, where one more rank
    has a sample more."""
    rest = samples - batch_size * (batches - 1)
    if rest > 0:
        return [batch_size] * (batches - 1) + [rest]
    half = batch_size // 2
    return [batch_size] * (batches - 2) + [batch_size - half, half]


def _cut(line: Sequence[int], counts: Sequence[int], start: int, end: int) -> List[BlockPart]:
    """Return the parts of a line of blocks between its samples `start` and `end`."""
    ends = list(accumulate(counts[block] for block in line))
    parts = []
    number, at = bisect_right(ends, start), start
    while at < end:
        begin = ends[number] - counts[line[number]]
        last = min(end, ends[number])
        if last > at:
            parts.append(BlockPart(line[number], at - begin, last - begin))
        number, at = number + 1, last
    return parts


class Window(NamedTuple):
    """Pieces whose samples are given in the order of `picks`: which piece, which sample of it."""

    pieces: List[BlockPart]
    picks: List[Tuple[int, int]]


def windows(
    pieces: Sequence[BlockPart], seed: str, skipped: int, first: int = FIRST_WINDOW
) -> Iterator[Window]:
    """Yield the windows of a lane without its first samples, so many; whole windows are not looked
    at.

    The first has so many blocks, each other twice those of the one before it, up to WINDOW.
    """
    for number, end in _spans(len(pieces), first):
        members = list(pieces[number:end])
        size = sum(piece.last - piece.first for piece in members)
        if skipped >= size:
            skipped -= size
            continue
        picks = [
            (which, sample) for which, piece in enumerate(members) for sample in range(*piece[1:])
        ]
        if seed:
            Random(f"{seed} window {number}").shuffle(picks)
        yield Window(members, picks[skipped:])
        skipped = 0


def _spans(count: int, size: int) -> Iterator[Tuple[int, int]]:
    begin = 0
    while begin < count:
        yield begin, begin + size
        begin, size = begin + size, min(2 * size, WINDOW)


def seed_of(shuffle: Optional[int], *parts: object) -> str:
    """Return the text that a generator of random numbers starts from; empty where nothing is
    shuffled."""
    return "" if shuffle is None else " ".join(map(str, (shuffle, *parts)))
