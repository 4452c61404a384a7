"""The packages layer: what the program imports and the base lacks, as wheels for the base."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distrain_nb.cluster.builds import CPU_BUILDS, builds, plain_name
from distrain_nb.errors import ImageError
from distrain_nb.image.base import Base
from distrain_nb.image.builders import uv
from distrain_nb.image.cache import cache_folder
from distrain_nb.image.draft import draft_of
from distrain_nb.image.installed import Installed, find_installed
from distrain_nb.image.layers import Layer, write_layer
from distrain_nb.image.progress import Listener, announce
from distrain_nb.image.recipe import PACKAGES, Recipe
from distrain_nb.image.registry.client import Registry
from distrain_nb.image.requirement_names import requirement_name, without_local_version
from distrain_nb.layout.hardware import GPU
from distrain_nb.layout.releases import is_of
from distrain_nb.program.requirements import public_version
from distrain_nb.scratch import Scratch

# Part of every key: a new number when the same packages are to be packed in another way.
_FORMAT = "1"
# The packages without which one of that extra computes on the CPU.
_BROUGHT = {
    "cuda12": re.compile(r"jax-cuda\d+-plugin"),
    "tpu": re.compile(r"libtpu(-nightly)?"),
}
_SHEBANG = re.compile(rb"#!.*python[\d.]*")


@dataclass(frozen=True)
class Packages:
    """Packages added to a base: `name==version` each, and the layer if there is anything."""

    added: tuple[str, ...] = ()
    layer: Layer | None = None
    python: str | None = None
    notes: tuple[str, ...] = ()

    def labels(self) -> dict[str, str]:
        """Return the labels from which later builds on this image learn its packages and Python."""
        labels = {"distrain-nb.packages": " ".join(self.added)} if self.added else {}
        return {**labels, "distrain-nb.python": self.python} if self.python else labels


def packages_for(
    imported: Sequence[str],
    recipe: Recipe,
    base: Base,
    registry: Registry,
    listener: Listener | None,
) -> Packages:
    """Resolve and pack what the program needs beyond the base.

    The same requirements on the same base give the same packages until one of them changes.
    Raises ImageError if the base's Python isn't known, or if uv finds no solution in wheels.
    """
    if not imported and not recipe.requirements:
        return Packages()
    installed = find_installed(base, recipe, registry, listener)
    idle = _unused_devices(imported, recipe, installed)
    if idle and not recipe.rehearsed:
        raise ImageError(f"{idle[0]}: name another base, or leave --base out")
    requirements, notes = requirements_to_resolve(imported, recipe.requirements, installed)
    notes = (*(f"{note}: the cloud's job would be refused" for note in idle), *notes)
    if not requirements:
        return Packages(python=installed.python, notes=notes)
    python = uv.Python(_python(installed, recipe), installed.platform)
    announce(listener, "resolving packages")
    added = _resolved(requirements, python, installed)
    layer = _layer(added, python, listener) if added else None
    return Packages(added, layer, python.version, notes)


def read_requirements(path: Path) -> tuple[str, ...]:
    """Return the requirements in a `requirements.txt`. Raises ImageError for pip options in it."""
    requirements = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text.startswith("-"):
            raise ImageError(
                f"{path}, line {number}: unsupported pip option {text.split()[0]!r}: expected "
                "requirements, such as numpy>=2, one per line"
            )
        if text:
            requirement_name(text)
            requirements.append(text)
    return tuple(requirements)


def requirements_to_resolve(
    imported: Sequence[str], requested: Sequence[str], installed: Installed
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requirements to resolve, and notes on what the base has in another version.

    What was asked for takes the place of what is imported; what is imported and in the base, be it
    built for other hardware, is left to the base.
    """
    lines = {requirement_name(line): line for line in requested}
    notes = []
    for line in imported:
        name = requirement_name(line)
        name_in_base = next((build for build in builds(name) if build in installed.packages), None)
        if not lines.keys().isdisjoint(builds(name)):
            continue
        if name_in_base is None:
            lines[name] = without_local_version(line)
            continue
        has, version = installed.packages[name_in_base], line.partition("==")[2]
        if version.endswith(".*"):  # a release that the user asked for
            if not is_of(has, version.removesuffix(".*")):
                notes.append(f"{name_in_base} is the base's {has}; {version} was asked for")
        elif name_in_base != name:
            notes.append(
                f"{name} is the base's {name_in_base} {has}; the notebook has {name} {version}"
            )
        elif version and public_version(has) != public_version(version):
            notes.append(f"{name} is the base's {has}; the notebook has {version}")
    return tuple(lines.values()), tuple(notes)


def _unused_devices(
    imported: Sequence[str], recipe: Recipe, installed: Installed
) -> tuple[str, ...]:
    """Note packages of the base that compute on the CPU though the job has devices for them."""
    asked = {plain_name(requirement_name(line)) for line in recipe.requirements}
    idle = []
    for line in imported:
        name = requirement_name(line)
        has = next((build for build in builds(name) if build in installed.packages), None)
        if has and plain_name(name) not in asked and _is_for_cpus(line, has, recipe, installed):
            version, devices = installed.packages[has], f"{recipe.device.upper()}s"
            idle.append(
                f"{recipe.base} has {has} {version}, which does not use the job's {devices}"
            )
    return tuple(idle)


def _is_for_cpus(line: str, has: str, recipe: Recipe, installed: Installed) -> bool:
    if recipe.device == GPU and (has in CPU_BUILDS or installed.packages[has].endswith("+cpu")):
        return True
    brings = next((one for extra, one in _BROUGHT.items() if f"[{extra}]" in line), None)
    return brings is not None and not any(map(brings.fullmatch, installed.packages))


def _python(installed: Installed, recipe: Recipe) -> str:
    if installed.python is None:
        raise ImageError(
            f"{recipe.base} doesn't say which Python it has: name it, as in --python 3.11, or "
            "have its layers scanned once with --look-inside."
        )
    return installed.python


def _resolved(
    requirements: Sequence[str], python: uv.Python, installed: Installed
) -> tuple[str, ...]:
    key = _key(
        sorted(requirements), python.version, python.platform, sorted(installed.packages.items())
    )
    path = cache_folder("resolutions") / f"{key}.json"
    if path.exists():
        return tuple(json.loads(path.read_bytes()))
    added = uv.resolve(requirements, python, installed.packages)
    with draft_of(path) as draft:
        draft.write_text(json.dumps(added))
    return added


def _layer(added: Sequence[str], python: uv.Python, listener: Listener | None) -> Layer:
    """Return the layer of exactly these packages, from the disk if it has been made before."""
    path = (
        cache_folder("layers") / f"{_key(_FORMAT, added, python.version, python.platform)}.tar.gz"
    )
    facts = path.with_suffix(".json")
    if facts.exists() and path.exists():
        return Layer(path=path, **json.loads(facts.read_bytes()))
    announce(listener, f"installing {len(added)} packages")
    with Scratch("packages", path.parent) as drafts:
        folder = drafts / "packages"
        uv.install(added, python, folder)
        _normalise(folder)
        with draft_of(path) as draft:
            layer = write_layer(draft, {PACKAGES: folder})
    with draft_of(facts) as draft:
        draft.write_text(
            json.dumps({"digest": layer.digest, "diff_id": layer.diff_id, "size": layer.size})
        )
    return replace(layer, path=path)


def _normalise(folder: Path) -> None:
    """Take out what depends on this machine: its Python's path in scripts, install times."""
    for path in folder.glob("*.dist-info/uv_cache.json"):
        path.unlink()
    for path in folder.glob("bin/*"):
        first, newline, rest = path.read_bytes().partition(b"\n")
        if _SHEBANG.fullmatch(first):
            _rewrite(path, b"#!/usr/bin/env python3" + newline + rest)
    for path in folder.glob("*.dist-info/RECORD"):
        text = path.read_text(encoding="utf-8")
        unsure = re.sub(r"(?m)^((?:\.\./)*bin/[^,]*),[^\n]*$", r"\1,,", text)
        lines = [x for x in unsure.splitlines() if "/uv_cache.json," not in x]
        _rewrite(path, ("\n".join(sorted(lines)) + "\n").encode())
    shutil.rmtree(folder / ".lock", ignore_errors=True)
    (folder / ".lock").unlink(missing_ok=True)


def _rewrite(path: Path, data: bytes) -> None:
    """Replace a file, and not what uv's cache shares with it through a hard link."""
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(data)
    path.chmod(mode)


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
