"""Which installed distributions imports come from, as `name==version`."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from distrain_nb.program.notebook.local_modules import locate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from distrain_nb.program.python.imports import ImportedModule

_OWN = "distrain-nb"


def requirements_of(imports: Iterable[ImportedModule], folder: Path) -> tuple[str, ...]:
    """Requirements for what is imported from installed distributions, sorted by name.

    A local part of a version (`2.13.0+cpu`) is left out: an index has only the public one.
    """
    dotted: dict[str, set[str]] = {}
    for found in imports:
        if found.root not in sys.stdlib_module_names:
            dotted.setdefault(found.root, set()).update(found.dotted)
    names: set[str] = set()
    for root, modules in dotted.items():
        if locate(root, folder).kind == "installed":
            names |= _distributions(root, frozenset(modules))
    return tuple(sorted(f"{n}=={_version(n)}" for n in names if n != _OWN))


def public_version(version: str) -> str:
    """`2.3.0` of `2.3.0+cpu`; text that is not a version stays as it is."""
    try:
        return Version(version).public
    except InvalidVersion:
        return version


@lru_cache(maxsize=4096)
def _version(name: str) -> str:
    return public_version(metadata.version(name))


@lru_cache(maxsize=4096)
def _distributions(root: str, modules: frozenset[str]) -> frozenset[str]:
    """Names of the distributions that these modules of one top-level name come from."""
    try:
        return frozenset({metadata.distribution(root).name})
    except metadata.PackageNotFoundError:
        pass
    found = [name for name, files in _files().items() if _has(files, root)]
    if len(found) < 2:
        return frozenset(found)
    # a namespace such as `google`: those that have one of the modules, or the package itself
    paths = {m.replace(".", "/") for m in modules}
    return frozenset(n for n in found if any(_is_module(_files()[n], path) for path in paths))


def _has(files: str, root: str) -> bool:
    return f"\n{root}/" in files or f"\n{root}.py" in files or f"\n{root}." in files


def _is_module(files: str, path: str) -> bool:
    return f"\n{path}.py" in files or f"\n{path}/__init__.py" in files


@lru_cache(maxsize=1)
def _files() -> dict[str, str]:
    """The list of installed files of each distribution, as text, a file a line."""
    every = ((d.name, d.read_text("RECORD") or "") for d in metadata.distributions())
    return {name: f"\n{text}" for name, text in every}
