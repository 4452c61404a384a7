"""Samples in tar files, as WebDataset has them: consecutive members with one key are a sample."""

from __future__ import annotations

import io
import re
import tarfile
from typing import Dict, Iterable, Iterator, Tuple, Union

RECORD = 512
Sample = Dict[str, Union[str, bytes]]

_NAME = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)", re.DOTALL)
_FILE = (b"0", b"\0")


def split_name(name: str) -> Tuple[str, str]:
    """Return the key of a member, up to the first dot of its last part, and what stands behind the
    dot.

    Both are empty where there is none, or nothing before it: such a member is of no sample.
    """
    match = _NAME.fullmatch(name)
    return (match[1], match[2].lower()) if match else ("", "")


def samples_in(content: bytes) -> Iterator[Sample]:
    """Yield the samples of a part of a tar file that begins with one and ends behind one.

    A sample has its key at `__key__`, and its members' bytes by their extensions. Raises ValueError
    and `tarfile.TarError` for what is no such part.
    """
    sample: Sample = {}
    for name, data in _members(content):
        key, extension = split_name(name)
        if not key:
            continue
        if sample and sample["__key__"] != key:
            yield sample
            sample = {}
        if not sample:
            sample["__key__"] = key
        sample[extension] = data
    if sample:
        yield sample


def _members(content: bytes) -> Iterable[Tuple[str, bytes]]:
    """Return names and contents. `tarfile` reads what plain headers can't say, but takes ten times
    as long for those that can."""
    members = []
    position, end = 0, len(content)
    while position + RECORD <= end:
        header = content[position : position + RECORD]
        if not header[0]:  # the end of the tar file
            break
        # The header of POSIX.1-1988 (ustar): type at 156, size in octal at 124. The high bit of the
        # size is GNU's mark for a binary number.
        if header[156:157] not in _FILE or header[124] & 0x80:
            return _members_by_tarfile(content)
        size = int(header[124:136].rstrip(b"\0 ") or b"0", 8)
        start = position + RECORD
        if not 0 <= size <= end - start:
            raise ValueError(f"{_name(header)!r} has {size} bytes, and {end - start} are left")
        members.append((_name(header), content[start : start + size]))
        position = start + padded(size)
    return members


def _name(header: bytes) -> str:
    # 345 to 500 is the name's beginning only behind ustar's magic, at 257; GNU has times there.
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "surrogateescape")


def _members_by_tarfile(content: bytes) -> Iterator[Tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name, file.read()
        if content[tar.offset : tar.offset + RECORD].strip(b"\0"):
            raise ValueError(f"the block at byte {tar.offset} is not the header of a member")


def padded(size: int) -> int:
    """Return how many bytes a member's content of that size takes in a tar file."""
    return -(-size // RECORD) * RECORD
