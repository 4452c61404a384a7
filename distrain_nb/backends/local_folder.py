"""A folder of this machine: its files, and a digest of all that is in them.

Hashes are kept by size and time of each file, as git keeps them: only a changed file is read again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.disk import files_below, replace_file

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
    def is_unchanged(self) -> bool:
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
        """Return the files below a folder, with those that links lead to. Raises DistrainError for
        what can't be read or be named in a bucket."""
        passed_over: list[str] = []
        try:
            files = tuple(sorted(_files_below(source, passed_over), key=lambda file: file.name))
        except OSError as error:
            raise DistrainError(f"{error.filename} can't be read: {error.strerror}") from None
        for item in files:
            if not (item.name.isprintable() and _is_utf8(item.name)):
                raise DistrainError(f"no bucket accepts the file name {item.name!r}")
        return cls(source, files, tuple(sorted(passed_over)))

    @cached_property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def digest(self) -> str:
        """Return the digest of names and contents: 32 hexadecimal digits. Raises DistrainError for
        what can't be read."""
        name = sha256(os.fsencode(self.source)).hexdigest()[:32]
        cache = private_home() / CACHE / f"{name}.json"
        cached = _cached_hashes(cache)
        hashes = {n: h for n, (size, at, h) in cached.items() if (size, at) == self._version(n)}
        missing = [file for file in self.files if file.name not in hashes]
        from distrain_nb.program.progress import ByteCounter

        meter = ByteCounter(f"reading {self.source}", sum(item.size for item in missing))
        now = time.time_ns()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for item, file_digest in zip(missing, pool.map(_hash, missing), strict=True):
                hashes[item.name] = file_digest
                meter.add(item.size)
        settled = {
            file.name: (file.size, file.changed, hashes[file.name])
            for file in self.files
            if file.changed < now - _SETTLED_NS
        }
        if settled != cached:
            cache.parent.mkdir(parents=True, exist_ok=True)
            replace_file(cache, json.dumps(settled).encode())
        lines = (f"{hashes[file.name]} {file.size} {file.name}\n" for file in self.files)
        return sha256("".join(lines).encode()).hexdigest()[:32]

    def _version(self, name: str) -> tuple[int, int] | None:
        file = self._by_name.get(name)
        return (file.size, file.changed) if file else None

    @cached_property
    def _by_name(self) -> Mapping[str, LocalFile]:
        return {file.name: file for file in self.files}


def _files_below(source: Path, passed_over: list[str]) -> Iterator[LocalFile]:
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
    digest = sha256()
    try:
        with file.path.open("rb") as opened:
            while piece := opened.read(PIECE):
                digest.update(piece)
    except OSError as error:
        raise DistrainError(f"{file.path} can't be read: {error.strerror}") from None
    return digest.hexdigest()


def _cached_hashes(cache: Path) -> dict[str, tuple[int, int, str]]:
    with suppress(OSError, ValueError, TypeError):
        read = json.loads(cache.read_bytes())
        return {str(name): (int(size), int(at), str(h)) for name, (size, at, h) in read.items()}
    return {}
