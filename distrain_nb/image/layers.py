"""Layers that are the same bytes for the same content, on any machine and on any day."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from distrain_nb.errors import ImageError

MAX_FILE = 4 << 30
# The first moment that a zip archive can express: tools that zip up what they find in an image
# refuse anything earlier, such as the epoch.
MODIFIED = 315_532_800
_BLOCK = 1 << 20
_READ = 1 << 18
# A third of the time of the usual level 6, for layers that are a tenth larger: on all but slow
# lines the image is in its registry sooner.
_LEVEL = 1
_SKIPPED_FOLDERS = frozenset({"__pycache__", ".ipynb_checkpoints"})


@dataclass(frozen=True)
class Layer:
    """One tar.gz file: `digest` of the file, `diff_id` of the tar in it, `size` in bytes."""

    path: Path
    digest: str
    diff_id: str
    size: int

    def chunks(self) -> Iterator[bytes]:
        """Yield the file, piece by piece."""
        with self.path.open("rb") as file:
            while data := file.read(_READ):
                yield data


def write_layer(path: Path, content: Mapping[str, Path | bytes]) -> Layer:
    """Pack `content` into the file `path`.

    Keys are absolute places in the image; values are the bytes of a file, or a file, a symbolic
    link or a folder (with all below it) of this machine. Owners, times and modes are normalised
    and the order is by name, so the digest depends on nothing but names and content. Raises
    ImageError for a file above 4 GiB and for what is neither file, folder nor link.
    """
    workers = max(2, os.cpu_count() or 2)
    with path.open("wb") as file, ThreadPoolExecutor(workers) as pool:
        packed = _Gzip(file, pool, 2 * workers)
        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, source in sorted(_walk(content), key=lambda pair: pair[0]):
                _add(tar, name, source)
        packed.finish()
    return Layer(path, f"sha256:{packed.sent.hexdigest()}", packed.diff_id, path.stat().st_size)


def _walk(content: Mapping[str, Path | bytes]) -> Iterator[tuple[str, Path | bytes]]:
    for path, source in content.items():
        name = path.strip("/")
        yield name, source
        if isinstance(source, Path) and source.is_dir() and not source.is_symlink():
            yield from _below(name, source)


def _below(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _SKIPPED_FOLDERS:
                continue
            inner = f"{name}/{entry.name}"
            yield inner, Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(inner, Path(entry.path))


def _add(tar: tarfile.TarFile, name: str, source: Path | bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = MODIFIED
    entry.mode = 0o644
    if isinstance(source, bytes):
        entry.size = len(source)
        tar.addfile(entry, io.BytesIO(source))
    elif source.is_symlink():
        entry.type, entry.mode = tarfile.SYMTYPE, 0o777
        entry.linkname = str(source.readlink())
        tar.addfile(entry)
    elif source.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    else:
        _add_file(tar, entry, source)


def _add_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, source: Path) -> None:
    if not source.is_file():
        raise ImageError(f"{source} is neither a file, a folder nor a link: leave it out.")
    status = source.stat()
    if status.st_size > MAX_FILE:
        raise ImageError(
            f"{source} has {status.st_size / 2**30:.1f} GiB; a file in an image may have at most "
            "4 GiB. Put it in a bucket and hand it to the run with --data NAME=URI."
        )
    entry.size = status.st_size
    entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
    with source.open("rb") as file:
        tar.addfile(entry, file)


class _Gzip(io.RawIOBase):
    """A file that compresses what is written to it, with both digests in the one pass.

    The tar is cut into blocks that become gzip members of their own, compressed in threads;
    members in a row are a valid gzip file, and the cuts depend on the content alone.
    """

    def __init__(self, out: IO[bytes], pool: ThreadPoolExecutor, ahead: int) -> None:
        self.sent = hashlib.sha256()
        self._out = out
        self._tar = hashlib.sha256()
        self._buffer = bytearray()
        self._pool = pool
        self._ahead = ahead
        self._pending: list[Future[bytes]] = []

    @property
    def diff_id(self) -> str:
        return f"sha256:{self._tar.hexdigest()}"

    def write(self, data: Any) -> int:
        self._tar.update(data)
        self._buffer += data
        while len(self._buffer) >= _BLOCK:
            self._compress(bytes(self._buffer[:_BLOCK]))
            del self._buffer[:_BLOCK]
        return len(data)

    def finish(self) -> None:
        self._compress(bytes(self._buffer))
        while self._pending:
            self._store()

    def _compress(self, block: bytes) -> None:
        self._pending.append(self._pool.submit(_member, block))
        if len(self._pending) > self._ahead:
            self._store()

    def _store(self) -> None:
        member = self._pending.pop(0).result()
        self.sent.update(member)
        self._out.write(member)


def _member(block: bytes) -> bytes:
    """Return one gzip member without a name and a time."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    return packer.compress(block) + packer.flush()
