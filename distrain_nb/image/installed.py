"""The installed parts of a base: its Python, its platform and its packages.

What a registry says of an image is asked for a moment: nobody is to wait for it.
"""

from __future__ import annotations

import queue
import re
import subprocess
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
from packaging.utils import canonicalize_name

from distrain_nb.errors import DistrainError, ImageError
from distrain_nb.image.base import Base, read_base
from distrain_nb.image.image import Listener
from distrain_nb.image.layer_scan import LayerScan, scan_layers
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.registry.reference import Reference
from distrain_nb.layout.catalog import current
from distrain_nb.layout.releases import release

if TYPE_CHECKING:
    from distrain_nb.image.image import Recipe

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
