"""Base images with packages of this environment, as prebuilt containers have theirs."""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

from tests.image.services.bases import BaseImage, kept_layer, small_base

WHERE = "usr/local/lib/python3.11/dist-packages"
# Debian's word that pip must not install; Google's containers don't have it.
NO_PIP = "usr/lib/python3.11/.wh.EXTERNALLY-MANAGED"
LEFT_OUT = re.compile(
    r"(torch/(test|include)|tensorflow/include|(numpy|sympy|networkx)/.*/tests)/.*"
    r"|torch/bin/(?!torch_shm).*|clang/native/.*|\.\..*"
)


def base_with(*names: str) -> BaseImage:
    """Debian's Python with these distributions and all that they require."""
    found: dict[str, Distribution] = {}
    for name in names:
        _collect(name, found)
    facts = sorted(f"{name}=={each.version}" for name, each in found.items())
    key = hashlib.sha256(repr((facts, LEFT_OUT.pattern, "2")).encode()).hexdigest()[:12]
    layer = kept_layer(f"{names[0]}-{key}", lambda draft: _pack(draft, found.values()))
    return BaseImage((*small_base().layers, layer))


def _collect(name: str, found: dict[str, Distribution]) -> None:
    plain = name.lower().replace("_", "-")
    if plain in found:
        return
    try:
        found[plain] = distribution(name)
    except PackageNotFoundError:
        return  # which this environment does without as well
    for text in found[plain].requires or ():
        needed = Requirement(text)
        if not needed.marker or needed.marker.evaluate({"extra": ""}):
            _collect(needed.name, found)


def _pack(draft: Path, packages: Iterable[Distribution]) -> None:
    """Not compressed, as that takes longer than to move the bytes about on one machine."""
    with (
        gzip.GzipFile(draft, "wb", 0, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        tar.addfile(tarfile.TarInfo(NO_PIP))
        for name, file in _files(packages):
            tar.add(file, f"{WHERE}/{name}", recursive=False, filter=_of_whole_seconds)


def _of_whole_seconds(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Do without a header more for each file, as Docker's own layers do."""
    entry.mtime = int(entry.mtime)
    return entry


def _files(packages: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    """With compiled modules where there are, since a container keeps none of its own."""
    for package in packages:
        listed = [x for x in package.files or () if not LEFT_OUT.fullmatch(x.as_posix())]
        there = {x.as_posix(): Path(str(x.locate())) for x in listed}
        for name in [x for x in there if x.endswith(".py")]:
            compiled = cache_from_source(name)
            there[compiled] = Path(str(package.locate_file(compiled)))
        yield from ((name, file) for name, file in there.items() if file.exists())
