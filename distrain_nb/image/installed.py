"""The installed parts of a base: its Python, its platform and its packages.

The entries of a layer: a tar archive that anybody may have made.

Formats: POSIX pax archives as Python reads them, and the whiteouts of the OCI image specification
1.1 ("Representing Changes"): `.wh.NAME` removes NAME of the layers below, `.wh..wh..opq` all that
they have in a folder. Other names that begin with `.wh..wh.` are notes of AUFS to itself.

A scan of a base's layers, to see which Python and which packages they hold.

Only names in the tar archives are looked at, while they stream by, which no library does; what
matters of a layer is kept by its digest, so no layer is read twice.

What a registry says of an image, asked for a moment: nobody is to wait for it.
"""

from __future__ import annotations

import io
import json
import lzma
import posixpath
import queue
import re
import subprocess
import tarfile
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal

import httpx
from packaging.utils import canonicalize_name

from distrain_nb.errors import DistrainError, ImageError, shown
from distrain_nb.image.base import Base, cache_folder, draft_of, read_base
from distrain_nb.image.image import Listener, Meter
from distrain_nb.image.registry.client import Registry, RegistryBlob
from distrain_nb.image.registry.manifest import Descriptor
from distrain_nb.image.registry.reference import Reference
from distrain_nb.layout.case import release
from distrain_nb.layout.catalog import current

if TYPE_CHECKING:
    from distrain_nb.image.image import Recipe

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
    """Read the base's layers, those that have not been read before."""
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
    """Return the `python3.X` that a container starts, at the end of its links; empty if there is
    none."""
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
    """Put a layer's names (with what they link to) over those below it."""
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


_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
# Wheels for a glibc run on later ones. 2.28 is in every base from Debian 10 and RHEL 8 on; the
# wheels of `libtpu` are for 2.31.
_GLIBCS = ((2, 17), (2, 28), (2, 31), (2, 34))
_USUAL_GLIBC = (2, 28)
# What the frameworks of the catalog are called as packages.
_FRAMEWORKS = {"pytorch": "torch", "tensorflow": "tensorflow", "scikit-learn": "scikit-learn"}


@dataclass(frozen=True)
class Installed:
    """`python` as `3.11`, or None if nothing says; `platform` in uv's words; `packages` by name,
    as far as they are known."""

    python: str | None
    platform: str
    packages: Mapping[str, str] = field(default_factory=dict)


def find_installed(
    base: Base, recipe: Recipe, registry: Registry, listener: Listener | None
) -> Installed:
    """Find out what a base has installed.

    The sources are, in this order: the recipe, its layers if they may be read, its labels, its
    environment and the catalog.
    """
    scan = scan_layers(base, registry, listener) if recipe.look_inside else LayerScan()
    labels, environment = base.config.labels, base.config.environment
    framework, version, listed = _from_catalog(base)
    versions = (
        recipe.python,
        scan.python,
        labels.get("distrain-nb.python"),
        environment.get("PYTHON_VERSION"),
        listed,
    )
    python = next((short for short in map(_short, versions) if short), None)
    packages = {framework: version} if framework else {}
    packages |= labelled_packages(labels)
    return Installed(python, _platform(base, scan), {**packages, **scan.packages})


def labelled_packages(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the packages that a build of ours has added, by name."""
    added = (x.partition("==") for x in labels.get("distrain-nb.packages", "").split())
    return {canonicalize_name(name): number for name, _, number in added}


def _short(version: str | None) -> str | None:
    parsed = release(version)
    return f"{parsed.major}.{parsed.minor}" if parsed and len(parsed.release) > 1 else None


def _from_catalog(base: Base) -> tuple[str, str, str]:
    """Return package, version and Python of a prebuilt container, whatever its multi-region."""
    name = re.sub(r"^(europe|asia)-docker", "us-docker", base.reference.name)
    tag = base.reference.tag or "latest"
    row = current().containers.get(f"{name}:{tag}")
    if row is None:
        return "", "", ""
    return _FRAMEWORKS.get(row.framework, ""), row.framework_version, row.python_version


def _platform(base: Base, scan: LayerScan) -> str:
    system, _, processor = base.config.platform.partition("/")
    machine = _PROCESSORS.get(processor)
    if system != "linux" or machine is None:
        raise ImageError(
            f"{base.reference} is for {base.config.platform}; packages can be added to images for "
            "linux/amd64 and linux/arm64."
        )
    if scan.musl:
        return f"{machine}-unknown-linux-musl"
    there = scan.glibc or _USUAL_GLIBC
    major, minor = max((version for version in _GLIBCS if version <= there), default=_GLIBCS[0])
    return f"{machine}-manylinux_{major}_{minor}"


WITHIN_S = 4.0


@dataclass(frozen=True)
class ImageDescription:
    """What an image's configuration has: `packages` by name, as a label of ours lists them."""

    environment: Mapping[str, str]
    labels: Mapping[str, str]
    packages: Mapping[str, str]


def describe(image: str, platform: str, within: float = WITHIN_S) -> ImageDescription | None:
    """Return what the registry says of an image for `platform`; None if it doesn't say it within
    so many seconds: it is out of reach, wants a login that there is not, or has no such image."""
    answers: queue.SimpleQueue[ImageDescription | None] = queue.SimpleQueue()

    # In a thread, as nothing else ends a look-up of a host's name, or a helper for logins.
    def ask() -> None:
        answers.put(_described(image, platform, within))

    threading.Thread(target=ask, name=f"asking for {image}", daemon=True).start()
    try:
        return answers.get(timeout=within)
    except queue.Empty:
        return None


def _described(image: str, platform: str, within: float) -> ImageDescription | None:
    try:
        where = Reference.parse(image)
        scopes = [f"repository:{where.repository}:pull"]
        with closing(Registry(where.registry, scopes, within, attempts=1)) as registry:
            config = read_base(registry, where, platform).config
        return ImageDescription(config.environment, config.labels, labelled_packages(config.labels))
    except (DistrainError, OSError, httpx.HTTPError, subprocess.SubprocessError):
        return None
