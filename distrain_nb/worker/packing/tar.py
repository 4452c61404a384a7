"""A shard as bytes: the same samples give the same, whoever writes them and whenever."""

from __future__ import annotations

import hashlib
import tarfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Callable, Deque, Dict, Iterable, Iterator, Sequence

from distrain_nb.worker.data.index import in_blocks
from distrain_nb.worker.data.samples import RECORD, padded
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.packing.errors import PackingFailed
from distrain_nb.worker.packing.samples import PackedMember, PackedSample
from distrain_nb.worker.packing.storage import CHUNK, chunks, fetch_object

END = bytes(2 * RECORD)
AT_ONCE = 16  # objects of a bucket that are fetched ahead by each process
FETCHED_AHEAD = 4 * CHUNK  # larger objects are read while they are written


def header(name: str, size: int) -> bytes:
    """Return the header block of a member. It has no owner and no time, so it never changes."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def size_of(sample: PackedSample) -> int:
    """Return how many bytes a sample takes in a shard."""
    return sum(
        len(header(member.name, member.size)) + padded(member.size) for member in sample.members
    )


def write_shard(
    file: BinaryIO, samples: Sequence[PackedSample], count: Callable[[int], None]
) -> Dict[str, Any]:
    """Write a shard, and give what an index has of it. `count` hears of bytes that were written.

    Raises PackingFailed where a file has changed since its size was looked up.
    """
    checksum, at, starts = hashlib.sha256(), 0, []

    def write(content: bytes) -> None:
        nonlocal at
        file.write(content)
        checksum.update(content)
        at += len(content)
        count(len(content))

    members = [member for sample in samples for member in sample.members]
    contents = _contents(members)
    for sample in samples:
        starts.append(at)
        for member in sample.members:
            write(header(member.name, member.size))
            _copy(member, next(contents), write)
    end = at
    write(END)
    return {
        "size": at,
        "sha256": checksum.hexdigest(),
        "samples": len(samples),
        "end": end,
        "blocks": in_blocks(starts),
    }


def _copy(member: PackedMember, content: Iterable[bytes], write: Callable[[bytes], None]) -> None:
    size = 0
    for part in content:
        size += len(part)
        if size > member.size:  # what grows all the time has no end
            break
        write(part)
    if size != member.size:
        raise PackingFailed(
            f"{member.place} has {size:,} bytes, and had {member.size:,} when packing began"
        )
    write(bytes(padded(size) - size))


def _contents(members: Iterable[PackedMember]) -> Iterator[Iterable[bytes]]:
    """Yield contents in the order of the members; fetch several small objects at once."""
    coming: Deque[Callable[[], Iterable[bytes]]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for member in members:
            coming.append(_contents_of(member, pool))
            if len(coming) > AT_ONCE:
                yield coming.popleft()()
        while coming:
            yield coming.popleft()()


def _contents_of(member: PackedMember, pool: ThreadPoolExecutor) -> Callable[[], Iterable[bytes]]:
    if not member.place:
        return lambda: (member.text.encode(),)
    if not in_bucket(member.place) or member.size > FETCHED_AHEAD:
        return lambda: chunks(member.place)
    return pool.submit(lambda: (fetch_object(member.place, member.size),)).result


def checksum_of(place: str) -> str:
    """Return the SHA-256 of a file or an object."""
    digest = hashlib.sha256()
    for part in chunks(place):
        digest.update(part)
    return digest.hexdigest()
