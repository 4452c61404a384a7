"""What is in a folder of this machine: its files, and a digest of all that is in them.

Hashes are kept by size and time of a file, as git keeps them, so that only what has changed is read
again.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.below import files_below
from distrain_nb.worker.files.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CACHE = "cache/digests"
AT_ONCE = 8
PIECE = 1 << 20  # bytes read at a time
# A file that was written just now may be written again without a new time.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class LocalFile:
    """A file: its path below the folder, where it is, its size in bytes, and the time (ns) of its
    last change."""

    name: str
    path: Path
    size: int
    changed: int

    @property
    def is_as_it_was(self) -> bool:
        """Whether it has been left alone since."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.changed)


@dataclass(frozen=True)
class Folder:
    """A folder with all files below it in the order of their names, or a single file.

    `passed_over` are names of links that lead nowhere, pipes, sockets and devices.
    """

    source: Path
    files: tuple[LocalFile, ...]
    passed_over: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Path) -> Folder:
        """Return links are followed, each to all that it leads to. Raises DistrainError for what
        can't be read or be named in a bucket."""
        passed_over: list[str] = []
        try:
            found = tuple(sorted(_found(source, passed_over), key=lambda file: file.name))
        except OSError as error:
            raise DistrainError(f"{error.filename} can't be read: {error.strerror}") from None
        for item in found:
            if not (item.name.isprintable() and _is_utf8(item.name)):
                raise DistrainError(f"no bucket takes the name {item.name!r} of a file")
        return cls(source, found, tuple(sorted(passed_over)))

    @cached_property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def digest(self) -> str:
        """Of names and contents: 32 hexadecimal digits. Raises DistrainError for what can't be
        read."""
        name = sha256(os.fsencode(self.source)).hexdigest()[:32]
        kept = private_home() / CACHE / f"{name}.json"
        known = _known(kept)
        hashes = {n: h for n, (size, at, h) in known.items() if (size, at) == self._version(n)}
        missing = [file for file in self.files if file.name not in hashes]
        from distrain_nb.program.progress import ByteCounter

        meter = ByteCounter(f"reading {self.source}", sum(item.size for item in missing))
        now = time.time_ns()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for item, found in zip(missing, pool.map(_hash, missing), strict=True):
                hashes[item.name] = found
                meter.add(item.size)
        settled = {
            file.name: (file.size, file.changed, hashes[file.name])
            for file in self.files
            if file.changed < now - _SETTLED_NS
        }
        if settled != known:
            kept.parent.mkdir(parents=True, exist_ok=True)
            replace_file(kept, json.dumps(settled).encode())
        lines = (f"{hashes[file.name]} {file.size} {file.name}\n" for file in self.files)
        return sha256("".join(lines).encode()).hexdigest()[:32]

    def _version(self, name: str) -> tuple[int, int] | None:
        found = self._by_name.get(name)
        return (found.size, found.changed) if found else None

    @cached_property
    def _by_name(self) -> Mapping[str, LocalFile]:
        return {file.name: file for file in self.files}


def _found(source: Path, passed_over: list[str]) -> Iterator[LocalFile]:
    if source.is_file():
        yield _file(source.name, source)
        return
    for name, path in files_below(source, passed_over):
        yield _file(name, path)


def _file(name: str, path: Path) -> LocalFile:
    stat = path.stat()
    return LocalFile(name, path, stat.st_size, stat.st_mtime_ns)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that Python couldn't decode
        return False
    return True


def _hash(file: LocalFile) -> str:
    found = sha256()
    try:
        with file.path.open("rb") as opened:
            while piece := opened.read(PIECE):
                found.update(piece)
    except OSError as error:
        raise DistrainError(f"{file.path} can't be read: {error.strerror}") from None
    return found.hexdigest()


def _known(kept: Path) -> dict[str, tuple[int, int, str]]:
    with suppress(OSError, ValueError, TypeError):
        read = json.loads(kept.read_bytes())
        return {str(name): (int(size), int(at), str(h)) for name, (size, at, h) in read.items()}
    return {}
