"""Images as folders, for machines without a container engine, kept for the next rehearsal.

The folder of an image's large layers, and of those below them, is kept too, and linked file by file
into that of the whole: of two programs on the same base, the second costs only its small layers,
also after an upgrade of this package or another list of small packages.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from distrain_nb.config import private_home
from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base, is_on_empty_base, read_base
from distrain_nb.image.layer_entries import BadEntry, name_of, open_layer
from distrain_nb.image.registry.client import Registry, RegistryBlob
from distrain_nb.image.registry.reference import Reference, is_loopback
from distrain_nb.program.progress import ByteCounter, report
from distrain_nb.rehearsal.engine.image_root import (
    AT_ONCE,
    extract,
    make_file,
    make_folder,
    white_out,
)
from distrain_nb.scratch import Scratch

if TYPE_CHECKING:
    from distrain_nb.image.registry.manifest import Descriptor

_LARGE = 10_000_000  # bytes of a layer; a smaller one is unpacked in a tenth of a second


# The sandbox mounts something here; a folder that is read-only must have them already.
MOUNT_POINTS = ("proc", "dev", "tmp", "var/tmp", "run", "root", "home", "gcs", "etc", "opt/ml")
MOUNTED_FILES = ("etc/hosts", "etc/resolv.conf")

_PLATFORM = "linux/amd64"
_GZIP = 31  # zlib's word for a header and checksums as gzip has them
_UNREADABLE = (
    BadEntry, OSError, EOFError, ValueError, OverflowError, tarfile.TarError, zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class UnpackedImage:
    """An image's files, and how a container of it starts."""

    root: Path
    settings: Mapping[str, Any]
    environment: Mapping[str, str]


def lacks_base(image: str) -> bool:
    """Return whether it is one of ours that stands on the empty image, as far as its registry on
    this machine says it."""
    where = Reference.parse(image)
    if not is_loopback(where.registry):
        return False
    try:
        with _registry_of(where) as registry:
            return is_on_empty_base(read_base(registry, where, _PLATFORM).config)
    except ImageError:
        return False  # the engine says what is wrong


def _registry_of(where: Reference) -> AbstractContextManager[Registry]:
    return closing(Registry(where.registry, [f"repository:{where.repository}:pull"]))


def unpack(image: str) -> UnpackedImage:
    """Return the image as a folder. Raises ImageError if it can't be read."""
    report("reading the image")
    where = Reference.parse(image)
    with _registry_of(where) as registry:
        base = read_base(registry, where, _PLATFORM)
        layers = base.manifest.layers
        root = _root(registry, base, layers, _lower(layers))
    return UnpackedImage(root, base.config.settings(), base.config.environment)


def _lower(layers: Sequence[Descriptor]) -> int:
    """Return how many layers are kept for other images too: up to the last large one, but never
    the one on top."""
    large = (n for n, layer in enumerate(layers[:-1], 1) if layer.size > _LARGE)
    return max(large, default=max(0, len(layers) - 1))


def _root(registry: Registry, image: Base, layers: Sequence[Descriptor], lower: int = 0) -> Path:
    """Return the folder of these layers: those above the `lower` ones on a copy of these."""
    chain = hashlib.sha256("".join(layer.digest for layer in layers).encode()).hexdigest()
    root = private_home() / "rehearsal" / "roots" / chain[:24]
    if root.exists():
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    scratch = Scratch("root", root.parent)
    draft = scratch.path
    try:
        if lower:
            below = _root(registry, image, layers[:lower])
            report("laying out the image")
            shutil.copytree(below, draft, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
        for layer in layers[lower:]:
            number = image.manifest.layers.index(layer) + 1
            phase = f"unpacking layer {number} of {len(image.manifest.layers)}"
            _apply(registry, image.reference.repository, layer, draft, phase)
        for name in MOUNT_POINTS:
            make_folder(draft, name)
        for name in MOUNTED_FILES:
            make_file(draft, name)
        report("writing the image to disk")
        draft.chmod(0o755)
        os.sync()  # a root that is there is whole, after a power cut too
        draft.rename(root)
    except _UNREADABLE as error:
        if not root.exists():  # nobody else has unpacked it meanwhile
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ImageError(f"cannot unpack {image.reference}: {why}") from error
    finally:
        scratch.close()
    return root


def _apply(registry: Registry, repository: str, layer: Descriptor, root: Path, phase: str) -> None:
    if layer.media_type.endswith("zstd"):
        raise ImageError(f"{layer.digest} is compressed with zstd, which only Docker reads here.")
    blob = RegistryBlob(registry, repository, layer.digest, layer.size)
    pieces = _counted(blob.chunks(), ByteCounter(phase, layer.size))
    apply_layer(gunzipped(pieces) if layer.media_type.endswith("gzip") else pieces, root)


def _counted(pieces: Iterable[bytes], counter: ByteCounter) -> Iterator[bytes]:
    for piece in pieces:
        counter.add(len(piece))
        yield piece


def apply_layer(archive: Iterator[bytes], root: Path) -> None:
    """Put the files of a layer's archive over those that `root` has; it is read to its end.

    Raises BadEntry, OSError, ValueError, OverflowError or TarError for one that can't be unpacked.
    """
    extracted: set[Path] = set()
    stream: IO[bytes] = io.BufferedReader(_Pieces(archive), AT_ONCE)
    with open_layer(stream, "r|", bufsize=AT_ONCE // 16) as tar:
        for entry in tar:
            name = name_of(entry.name)
            if name.opaque or name.removed:
                white_out(root, name, extracted)
            elif name.last and not name.ignored:
                extracted.add(extract(tar, entry, root, name))
    while stream.read(AT_ONCE):
        pass  # the digest is of the whole blob


def gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the contents of all members of a gzip file.

    Python's own reader takes 8 KiB at a time, tarfile's only the first member. Raises EOFError
    where the last member is cut off, and zlib.error.
    """
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
