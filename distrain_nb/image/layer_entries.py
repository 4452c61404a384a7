"""The entries of a layer: a tar archive that anybody may have made.

Formats: POSIX pax archives as Python reads them, and the whiteouts of the OCI image specification
1.1 ("Representing Changes"): `.wh.NAME` removes NAME of the layers below, `.wh..wh..opq` all that
they have in a folder. Other names that begin with `.wh..wh.` are notes of AUFS to itself.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

from distrain_nb.errors import ImageError, shown

_WHITEOUT, _NOTES, _OPAQUE = ".wh.", ".wh..wh.", ".wh..wh..opq"
_HEADERS = b"xgXLK"  # what only describes the next entry, and is read into memory whole
_LONGEST_HEADER = 1 << 20
_LONGEST_SPARSE = 4 << 30


class BadEntry(ImageError):
    """Something that no image needs, and that can't be, or must not be, put on this machine."""


@dataclass(frozen=True)
class Name:
    """The place of an entry: `folder` is absolute, `last` what it is called in it.

    Of the root itself `last` is empty. `removed` is what a whiteout takes away there; `opaque`
    says that it takes all; `ignored` that the entry is no file of the image.
    """

    folder: str
    last: str
    removed: str = ""
    opaque: bool = False
    ignored: bool = False


def name_of(text: str) -> Name:
    """Raise BadEntry for a name that can't be one."""
    if "\0" in text:
        raise BadEntry(f"the name {shown(text)} has a NUL in it")
    folder, last = posixpath.split(posixpath.normpath(f"/{text.lstrip('/')}"))
    if last == _OPAQUE:
        return Name(folder, last, opaque=True)
    if last.startswith(_NOTES):
        return Name(folder, last, ignored=True)
    if not last.startswith(_WHITEOUT):
        return Name(folder, last)
    removed = last.removeprefix(_WHITEOUT)
    if removed in ("", ".", ".."):
        raise BadEntry(f"the whiteout {shown(text)} names no file")
    return Name(folder, last, removed)


@contextmanager
def open_layer(
    stream: IO[bytes], mode: Literal["r|", "r|*"], bufsize: int = tarfile.RECORDSIZE
) -> Iterator[tarfile.TarFile]:
    """Open the archive as a stream. Reading it raises tarfile's own errors and BadEntry."""
    with tarfile.open(fileobj=stream, mode=mode, tarinfo=_Entry, bufsize=bufsize) as tar:
        yield tar


class _Entry(tarfile.TarInfo):
    """Headers within bounds: Python would read one of gigabytes, or go back by a negative size."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> _Entry:
        entry = super().frombuf(buf, encoding, errors)
        if entry.size < 0 or (entry.type in _HEADERS and entry.size > _LONGEST_HEADER):
            raise BadEntry(f"a header of the archive says {entry.size:,} bytes")
        return entry


def check_sparse(entry: tarfile.TarInfo) -> None:
    """Raise BadEntry for a file of holes that is far larger than what the archive has of it."""
    if entry.issparse() and entry.size > _LONGEST_SPARSE:
        raise BadEntry(f"{shown(entry.name)} is a sparse file of {entry.size:,} bytes")
