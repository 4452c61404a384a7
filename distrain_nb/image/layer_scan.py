"""A scan of a base's layers for the Python and the packages in them.

It reads the names in tar archives while they stream by, which no library does. The result is kept
by the layer's digest, so that no layer is read twice.
"""

from __future__ import annotations

import io
import json
import lzma
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base
from distrain_nb.image.cache import cache_folder
from distrain_nb.image.draft import draft_of
from distrain_nb.image.layer_entries import BadEntry, name_of, open_layer
from distrain_nb.image.progress import Listener, Meter
from distrain_nb.image.registry.client import Registry, RegistryBlob
from distrain_nb.image.registry.manifest import Descriptor

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGE = re.compile(
    r".*/python([\d.]+)/(?:site|dist)-packages/([^/]+?)-([^/-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info"
)
_PYTHON = re.compile(r"(?:.*/)?(?:bin|etc/alternatives)/python(?:3(?:\.\d+)?)?")
_LIBC = re.compile(r"(?:.*/)?libc(?:-2\.(\d+)\.so|\.so\.6)")
# Before this glibc, `libc.so.6` was a link to `libc-2.31.so` or the like.
_WITHOUT_NUMBER = 34
_MUSL = re.compile(r"(?:.*/)?ld-musl-[^/]+\.so\.1")
_UNREADABLE = (
    BadEntry, EOFError, OverflowError, ValueError, tarfile.TarError, zlib.error, lzma.LZMAError,
)  # fmt: skip


@dataclass(frozen=True)
class LayerScan:
    """The result of a scan: `python` as `3.11`, `packages` by name, the least `glibc`."""

    python: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    glibc: tuple[int, int] | None = None
    musl: bool = False


def scan_layers(base: Base, registry: Registry, listener: Listener | None) -> LayerScan:
    """Scan the layers of a base. A layer that was scanned before is not read again."""
    meter = Meter(listener, "scanning the base's layers")
    repository = base.reference.repository
    names: dict[str, str] = {}
    for layer in base.manifest.layers:
        _apply(names, _layer_names(registry, repository, layer, meter))
    path = base.config.environment.get("PATH", _DEFAULT_PATH)
    return _scan_of(names, _python_on(path, names))


def _scan_of(names: Mapping[str, str], program: str) -> LayerScan:
    python = program.rpartition("/python")[2] or None
    # Debian's own packages are those of Debian's own Python.
    homes = (python, "3") if program.startswith("usr/bin/") else (python,)
    matches = [match for match in map(_PACKAGE.fullmatch, names) if match]
    packages: dict[str, str] = {canonicalize_name(m[2]): m[3] for m in matches if m[1] in homes}
    libc = [int(match[1] or _WITHOUT_NUMBER) for match in map(_LIBC.fullmatch, names) if match]
    musl = any(_MUSL.fullmatch(name) for name in names)
    return LayerScan(python, packages, (2, max(libc)) if libc else None, musl)


def _python_on(path: str, names: Mapping[str, str]) -> str:
    """Return the `python3.X` that a container starts, after all links; empty if there is none."""
    for folder in path.split(":"):
        place = posixpath.join(folder, "python3").lstrip("/")
        for _ in range(8):
            if re.fullmatch(r".*/python3\.\d+", place):
                return place
            if not names.get(place):
                break
            place = posixpath.normpath(
                posixpath.join("/", posixpath.dirname(place), names[place])
            ).lstrip("/")
    return ""


def _apply(names: dict[str, str], layer: Iterable[tuple[str, str]]) -> None:
    """Put the names of a layer, with the targets of links, over the names below it."""
    links: dict[str, str] = {}
    for text, link in layer:
        name = name_of(text)
        folder = name.folder.strip("/")
        if name.opaque:
            _remove(names, folder, itself=False)
        elif name.removed:
            _remove(names, posixpath.join(folder, name.removed), itself=True)
        elif not name.ignored:
            links[text] = link
    names.update(links)


def _remove(names: dict[str, str], place: str, *, itself: bool) -> None:
    below = f"{place}/".lstrip("/")
    for name in [n for n in names if n.startswith(below) or (itself and n == place)]:
        del names[name]


def _layer_names(
    registry: Registry, repository: str, layer: Descriptor, meter: Meter
) -> list[tuple[str, str]]:
    path = cache_folder("layer-scans") / f"{layer.digest.replace(':', '-')}-2.json"
    if path.exists():
        return [(name, link) for name, link in json.loads(path.read_bytes())]
    if layer.media_type.endswith("zstd"):
        raise ImageError(f"The base's layer {layer.digest} is compressed with zstd: name --python.")
    meter.expect(layer.size)
    blob = RegistryBlob(registry, repository, layer.digest, layer.size)
    try:
        names = sorted(set(_interesting(_StreamFile(blob.chunks(), meter))))
    except _UNREADABLE as error:
        raise ImageError(f"cannot read the base's layer {layer.digest}: {error}") from error
    with draft_of(path) as draft:
        draft.write_text(json.dumps(names))
    return names


def _interesting(file: _StreamFile) -> Iterator[tuple[str, str]]:
    """Yield names of packages, Pythons and C libraries, with the targets of links."""
    buffered = io.BufferedReader(file, 1 << 18)
    with open_layer(buffered, "r|*") as tar:
        for entry in tar:
            place = name_of(entry.name)
            name = posixpath.join(place.folder, place.last).lstrip("/")
            package = _PACKAGE.match(f"{name}/")
            if package or place.removed or place.opaque:
                yield (package[0] if package else name), ""
            elif _PYTHON.fullmatch(name):
                yield name, entry.linkname
            elif (entry.isreg() and _LIBC.fullmatch(name)) or _MUSL.fullmatch(name):
                yield name, ""
    while buffered.read(1 << 18):
        pass  # the digest is of the whole blob


class _StreamFile(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes], meter: Meter) -> None:
        self._pieces = pieces
        self._meter = meter
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._pieces, b"")
            self._meter.sent(len(self._rest))
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)
