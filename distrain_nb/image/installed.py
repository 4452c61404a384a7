"""The installed parts of a base: its Python, its platform and its packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base
from distrain_nb.image.layer_scan import LayerScan, scan_layers
from distrain_nb.image.progress import Listener
from distrain_nb.image.registry.client import Registry
from distrain_nb.layout.catalog import current
from distrain_nb.layout.releases import release

if TYPE_CHECKING:
    from distrain_nb.image.recipe import Recipe

_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
# Wheels for a glibc run on later ones. 2.28 is in every base from Debian 10 and RHEL 8 on; the
# wheels of `libtpu` are for 2.31.
_GLIBCS = ((2, 17), (2, 28), (2, 31), (2, 34))
_USUAL_GLIBC = (2, 28)
# What the frameworks of the catalog are called as packages.
_FRAMEWORKS = {"pytorch": "torch", "tensorflow": "tensorflow", "scikit-learn": "scikit-learn"}


@dataclass(frozen=True)
class Installed:
    """The Python, platform and packages of a base.

    `python` is a version such as `3.11`, or None if it is not known. `platform` is in uv's words.
    `packages` are versions by name, as far as they are known.
    """

    python: str | None
    platform: str
    packages: Mapping[str, str] = field(default_factory=dict)


def find_installed(
    base: Base, recipe: Recipe, registry: Registry, listener: Listener | None
) -> Installed:
    """Find out what a base has installed.

    The sources are the recipe, the layers (if the recipe allows to read them), the labels, the
    environment and the catalog. The first that knows counts.
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
    """Return the packages that builds have added to an image and labelled, by name."""
    added = (x.partition("==") for x in labels.get("distrain-nb.packages", "").split())
    return {canonicalize_name(name): number for name, _, number in added}


def _short(version: str | None) -> str | None:
    parsed = release(version)
    return f"{parsed.major}.{parsed.minor}" if parsed and len(parsed.release) > 1 else None


def _from_catalog(base: Base) -> tuple[str, str, str]:
    """Return package, version and Python of a prebuilt container, for any multi-region."""
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
