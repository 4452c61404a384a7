"""Data of this machine for a job elsewhere, uploaded to a bucket.

The name in the bucket is made of the data's content, so that the same content is uploaded once.
Hashes are kept by size and time of each file, as git keeps them: only a changed file is read again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.config import path_named, private_home
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.worker.files.disk import files_below, readable_size, replace_file

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.backends.job import AnyJob

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


GIB = 1 << 30


@dataclass(frozen=True)
class Upload:
    """What a name of `--data` stands for here: `source` is a folder or a file, `target` the URI of
    the folder that it becomes, `file` the name of a single file in it; `files` are how many there
    are, `size` is in bytes; `passed_over` are what is in it and is no file, such as pipes."""

    name: str
    source: str
    target: str
    file: str
    files: int
    size: int
    passed_over: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return the digest of its content."""
        return self.target.rpartition("/")[2]

    @property
    def uri(self) -> str:
        """Return its address in the bucket."""
        return f"{self.target}/{self.file}" if self.file else self.target

    def findings(self) -> Iterator[Finding]:
        """Yield which files go where, and which are left out."""
        where = f"--data {self.name}"
        if self.passed_over:
            first, *others = self.passed_over
            more = f" and {len(others):,} more" if others else ""
            message = (
                f"{first}{more} of {self.source} stays here: links that lead nowhere, pipes, "
                "sockets and devices are no files that a bucket can have"
            )
            yield Finding("remote.data-passed-over", Severity.WARNING, where, message)
        count = "1 file" if self.files == 1 else f"{self.files:,} files"
        message = (
            f"before the run starts, {self.source} ({count}, {readable_size(self.size)}) is "
            f"uploaded to {self.target}; files that are already there are skipped"
        )
        yield Finding("remote.data", Severity.INFO, where, message)


def local_path(name: str, text: str, mounted: Iterable[str]) -> Path | None:
    """Return the path on this machine that a text of `--data` means, for a job elsewhere whose
    machines have folders of their own at `mounted`; None for a URI, and for what they have
    themselves.

    Raises OptionError for what is not there, or can't be.
    """
    scheme, separator, rest = text.partition("://")
    if separator and scheme != "file":
        return None
    try:
        path = path_named(rest if separator else text)
    except OptionError as error:
        raise OptionError(f"--data {name}={error}") from None
    if path.is_absolute() and not separator:
        theirs = any(f"{path}/".startswith(item) for item in mounted)
        if theirs or not path.exists():
            return None
    if not path.exists():
        raise OptionError(f"--data {name}={text}: there is no {path} on this machine")
    return path.resolve()


def upload_of(name: str, path: Path, below: str, limit: float) -> Upload:
    """Return the upload of a folder or file to a folder `below` a URI; `limit` is how many GiB it
    may have. Raises OptionError."""
    try:
        folder = Folder.of(path)
        if not folder.files:
            raise DistrainError(f"there are no files in {path}")
        if folder.size > limit * GIB:
            more = -(-folder.size // GIB) + 1
            raise DistrainError(
                f"{readable_size(folder.size)} in {len(folder.files):,} files are to be uploaded, "
                f"more than {readable_size(round(limit * GIB))}: `%distrain config "
                f"data_limit={more}` allows it, or name a part of it"
            )
        target = f"{below}/{folder.digest()}"
    except DistrainError as error:
        raise OptionError(f"--data {name}={path}: {error}") from None
    single = path.name if path.is_file() else ""
    files = len(folder.files)
    return Upload(name, str(path), target, single, files, folder.size, folder.passed_over)


def with_uploads(job: AnyJob, backend: AnyBackend) -> AnyJob:
    """Return the job with URIs for all of its data that its machines can't read where they are; its
    `uploads` are to get there yet. Raises OptionError."""
    below = backend.staging(job) if job.data else ""
    if not below:
        return job
    texts: list[str] = []
    uploads: list[Upload] = []
    for text in job.data:
        name, _, uri = text.partition("=")
        path, rest = backend.parts(uri)
        source = local_path(name, path, backend.mounted) if path else None
        if source is None:
            texts.append(text)
            continue
        upload = upload_of(name, source, below, job.config.data_limit)
        uploads.append(upload)
        texts.append(f"{name}={upload.uri}{rest}")
    return replace(job, data=tuple(texts), uploads=tuple(uploads))
