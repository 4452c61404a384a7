"""Images as folders, for machines without a container engine, kept for the next rehearsal.

The folder of an image's lower layers is kept too, and linked file by file into that of the whole:
of two programs on the same base and with the same packages, the second costs only its own layer.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import shutil
import tarfile
import tempfile
import zlib
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from distrain_nb.config import home
from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base, read_base
from distrain_nb.image.reference import Reference
from distrain_nb.image.registry import Registry, RegistryBlob

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from distrain_nb.image.manifest import Descriptor

# The sandbox mounts something here; a folder that is read-only must have them already.
MOUNT_POINTS = ("proc", "dev", "tmp", "var/tmp", "run", "root", "home", "gcs", "etc", "opt/ml")

_PLATFORM = "linux/amd64"
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS = 40
_AT_ONCE = 1 << 20
_GZIP = 31  # zlib's word for a header and checksums as gzip has them
_UNREADABLE = (OSError, EOFError, tarfile.TarError, zlib.error)


@dataclass(frozen=True)
class Unpacked:
    """An image's files, and how a container of it starts."""

    root: Path
    settings: Mapping[str, Any]
    environment: Mapping[str, str]


def unpack(image: str) -> Unpacked:
    """The image as a folder. Raises ImageError if it can't be read."""
    where = Reference.parse(image)
    with closing(Registry(where.registry, [f"repository:{where.repository}:pull"])) as registry:
        base = read_base(registry, where, _PLATFORM)
        root = _root(registry, base, base.manifest.layers)
    return Unpacked(root, base.config.settings(), base.config.environment)


def _root(registry: Registry, image: Base, layers: Sequence[Descriptor], top: int = 1) -> Path:
    """The folder of these layers: the last `top` of them on a copy of those below."""
    chain = hashlib.sha256("".join(layer.digest for layer in layers).encode()).hexdigest()
    root = home() / "rehearsal" / "roots" / chain[:24]
    if root.exists():
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=root.parent, prefix=".draft-"))
    try:
        if top and len(layers) > 1:
            below = _root(registry, image, layers[:-1], top=0)
            shutil.copytree(below, draft, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
            layers = layers[-1:]
        for layer in layers:
            _apply(registry, image.reference.repository, layer, draft)
        for name in MOUNT_POINTS:
            (draft / name).mkdir(parents=True, exist_ok=True)
        (draft / "etc/hosts").touch()
        (draft / "etc/resolv.conf").touch()
        draft.chmod(0o755)
        draft.rename(root)
    except _UNREADABLE as wrong:
        if not root.exists():  # nobody else has unpacked it meanwhile
            raise ImageError(f"{image.reference} can't be unpacked: {wrong}") from wrong
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return root


def _apply(registry: Registry, repository: str, layer: Descriptor, root: Path) -> None:
    if layer.media_type.endswith("zstd"):
        raise ImageError(f"{layer.digest} is compressed with zstd, which only Docker reads here.")
    blob = RegistryBlob(registry, repository, layer.digest, layer.size)
    own: set[Path] = set()
    pieces = blob.chunks()
    plain = gunzipped(pieces) if layer.media_type.endswith("gzip") else pieces
    stream: IO[bytes] = io.BufferedReader(_Pieces(plain), _AT_ONCE)
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_AT_ONCE // 16) as tar:
        for entry in tar:
            folder, name = posixpath.split(posixpath.normpath("/" + entry.name))
            if name == _OPAQUE:
                for path in place(root, folder).iterdir():
                    _cover(path, own)
            elif name.startswith(_WHITEOUT):
                _cover(place(root, folder) / name[len(_WHITEOUT) :], own)
            elif name:
                own.add(_extract(tar, entry, root, place(root, folder) / name))
    while stream.read(_AT_ONCE):
        pass  # the digest is of the whole blob


def gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What is in all members of a gzip file. Python's own reader takes 8 KiB at a time, tarfile's
    only the first member. Raises EOFError where the last one isn't whole, and zlib.error."""
    member = None
    for piece in pieces:
        rest = piece
        while rest := rest if member else rest.lstrip(b"\0"):
            member = member or zlib.decompressobj(_GZIP)
            if plain := member.decompress(rest):
                yield plain
            rest = member.unused_data
            if member.eof:
                member = None
    if member:
        raise EOFError("its end is missing")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that is read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _cover(path: Path, own: Container[Path]) -> None:
    """Remove what the layers below have there; what is the layer's own may have come before."""
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            _cover(inner, own)
        if path not in own:
            with suppress(OSError):  # something of its own is in it
                path.rmdir()
    elif path not in own:
        path.unlink(missing_ok=True)


def _extract(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir() and target.is_dir() and not target.is_symlink():
        target.chmod(entry.mode | 0o700)
        return target
    _remove(target)  # never write into a file: a folder below may share it
    if entry.isdir():
        target.mkdir()
        target.chmod(entry.mode | 0o700)
    elif entry.issym():
        target.symlink_to(entry.linkname)
    elif entry.islnk():
        folder, name = posixpath.split(posixpath.normpath("/" + entry.linkname))
        target.hardlink_to(place(root, folder) / name)
    elif entry.isfile():
        source: IO[bytes] = tar.extractfile(entry)  # type: ignore[assignment]
        with target.open("wb") as file:
            shutil.copyfileobj(source, file, _AT_ONCE)
        target.chmod(entry.mode | 0o400)
        os.utime(target, (entry.mtime, entry.mtime))
    return target


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def place(root: Path, name: str) -> Path:
    """Where a path of the image is on this machine, its links followed inside `root` alone."""
    parts = [part for part in reversed(name.split("/")) if part]
    found, links = root, 0
    while parts:
        part = parts.pop()
        if part == "..":
            found = found if found == root else found.parent
            continue
        step = found / part
        if part == "." or not step.is_symlink():
            found = step if part != "." else found
            continue
        links += 1
        if links > _LINKS:
            raise ImageError(f"{name}: too many links")
        target = str(step.readlink())
        found = root if target.startswith("/") else found
        parts += [x for x in reversed(target.split("/")) if x]
    return found
