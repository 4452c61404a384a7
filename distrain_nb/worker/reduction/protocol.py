"""The protocol of workers and reducers, and how a tensor is split among the reducers.

A worker opens one connection to each reducer for each process group, and first says whose it is (a
`Greeting`). For each reduction it then sends a header and, without anything between, its part of
the tensor that this reducer sums. The reducer answers with the sums, a chunk at a time, each behind
a `FRAME`, which also says up to which chunk the worker may send; all begin with `first_credit`.
Numbers are little endian.
"""

from __future__ import annotations

import json
import struct
from typing import Iterator, List, NamedTuple, Tuple

SMALLEST_CHUNK_BYTES = 16 << 10
# Of a part, so that receiving, summing and sending overlap.
CHUNKS = 16
# What may be on its way from all members to a reducer. More than the port that leads to it queues,
# often 1 MB, would be lost; and what waits there for long keeps sums from coming back meanwhile.
PORT_BYTES = 384 << 10
# Of the chunks of a large part, where there are many members.
LARGE_CHUNK_BYTES = 24 << 10
# How many chunks a member may be ahead of the sums. The reducer keeps so many of each.
WINDOW = 64
# Less is not worth a message of its own.
SMALLEST_PART_BYTES = 32 << 10
# Where parts and chunks begin: a multiple of every element's size and of a cache line.
ALIGNMENT = 64

# In the order of their codes, with their sizes in bytes.
DTYPES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
NAMES = tuple(DTYPES)

# What it is, the bytes that follow, and how many chunks the worker may have sent.
FRAME = struct.Struct("<IIQ")
SUM, FAILED, CREDIT = 0, 1, 2

_HEADER = struct.Struct("<IBBxxQ")
HEADER_BYTES = _HEADER.size
_GREETING = struct.Struct("<4sI")
GREETING_BYTES = _GREETING.size
_MAGIC = b"dRS3"
_LONGEST_GREETING = 1 << 20
MOST_MEMBERS = 1 << 14  # of a group; the reducer has memory for each
_MOST_RANKS = 1 << 31


class Garbled(Exception):
    """The other end speaks another protocol."""


class Greeting(NamedTuple):
    """The greeting of a worker: `ranks` are the group's, numbered in the whole job, and `member` is
    the number of this one among them. One that `asks` only wants to know whom the reducer waits
    for."""

    group: str
    ranks: Tuple[int, ...]
    member: int
    asks: bool = False

    def encode(self) -> bytes:
        text = json.dumps([self.group, list(self.ranks), self.member, self.asks]).encode()
        return _GREETING.pack(_MAGIC, len(text)) + text

    @classmethod
    def decode(cls, text: bytes) -> Greeting:
        """Decode what follows the first bytes. Raises Garbled."""
        try:
            group, ranks, member, asks = json.loads(text)
            kinds = [type(part) for part in (group, ranks, member, asks)]
            is_valid = kinds == [str, list, int, bool] and {type(rank) for rank in ranks} <= {int}
        except (ValueError, TypeError, RecursionError) as error:
            raise Garbled(str(error)) from None
        if not is_valid:
            raise Garbled("no greeting")
        if not 2 <= len(ranks) <= MOST_MEMBERS or not 0 <= member < len(ranks):
            raise Garbled(f"no member {member} of {len(ranks)}")
        if len({*ranks}) < len(ranks) or min(ranks) < 0 or max(ranks) >= _MOST_RANKS:
            raise Garbled("no ranks of a job")
        return cls(group, tuple(ranks), member, asks)


def greeting_length(first: bytes) -> int:
    """Return how many bytes follow the first ones of a greeting. Raises Garbled."""
    magic, length = _GREETING.unpack(first)
    if magic != _MAGIC or length > _LONGEST_GREETING:
        raise Garbled("no greeting")
    return int(length)


class Header(NamedTuple):
    """One reduction's part for one reducer: its number in the group, from 0, the element type's
    name, whether the mean is wanted in place of the sum, and the part's bytes."""

    sequence: int
    dtype: str
    mean: bool
    size: int

    def encode(self) -> bytes:
        code = NAMES.index(self.dtype)
        return _HEADER.pack(self.sequence & 0xFFFFFFFF, code, self.mean, self.size)

    @classmethod
    def decode(cls, raw: bytes) -> Header:
        """Raise Garbled."""
        sequence, code, mean, size = _HEADER.unpack(raw)
        if code >= len(NAMES) or mean > 1 or not size or size % DTYPES[NAMES[code]]:
            raise Garbled("no header")
        return cls(sequence, NAMES[code], bool(mean), size)

    def __str__(self) -> str:
        operation = "mean" if self.mean else "sum"
        return f"all-reduce {self.sequence}, the {operation} of {self.size} bytes of {self.dtype}"


def largest_chunk(members: int) -> int:
    """Return how large the chunks are of large parts that so many members send: a port holds
    several of each. Smaller ones would cost more time of CPU."""
    return max(LARGE_CHUNK_BYTES, PORT_BYTES // (4 * members) // ALIGNMENT * ALIGNMENT)


def chunk_bytes(size: int, members: int) -> int:
    """Return how large the chunks of a part are; the last may be smaller."""
    share = -(-size // CHUNKS)
    aligned = -(-share // ALIGNMENT) * ALIGNMENT
    return max(SMALLEST_CHUNK_BYTES, min(largest_chunk(members), aligned))


def first_credit(members: int) -> int:
    """Return how many chunks each may send unasked: all together those of half a port."""
    return max(1, PORT_BYTES // 2 // (members * largest_chunk(members)))


def chunk_count(size: int, members: int) -> int:
    """Return how many chunks a part has."""
    return -(-size // chunk_bytes(size, members))


def chunks(size: int, members: int) -> Iterator[int]:
    """Yield the sizes of a part's chunks, in order."""
    length = chunk_bytes(size, members)
    for begin in range(0, size, length):
        yield min(length, size - begin)


class TensorPart(NamedTuple):
    """The bytes from `begin` to `end` of a tensor, for a reducer."""

    reducer: int
    begin: int
    end: int


def parts(size: int, reducers: int, sequence: int) -> List[TensorPart]:
    """Return how `size` bytes are shared out: evenly, small ones to few reducers, in turns."""
    number = max(1, min(reducers, size // SMALLEST_PART_BYTES))
    units = -(-size // ALIGNMENT)
    edges = [min(size, units * n // number * ALIGNMENT) for n in range(number + 1)]
    return [
        TensorPart((sequence + n) % reducers, begin, end)
        for n, (begin, end) in enumerate(zip(edges, edges[1:]))
    ]


def split_address(address: str) -> Tuple[str, int]:
    """Split `host:port`. Raises ValueError."""
    host, _, port = address.rpartition(":")
    return host, int(port)
