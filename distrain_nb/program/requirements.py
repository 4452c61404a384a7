"""Which installed distributions imports come from, as `name==version`."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING

from distrain_nb.program.local_modules import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from distrain_nb.program.imports import Imported

_OWN = "distrain-nb"


def requirements_of(imports: Iterable[Imported], folder: Path) -> tuple[str, ...]:
    """Requirements for what is imported from installed distributions, sorted by name.

    A local part of a version (`2.13.0+cpu`) is left out: an index has only the public one.
    """
    dotted: dict[str, set[str]] = {}
    for found in imports:
        if found.root not in sys.stdlib_module_names:
            dotted.setdefault(found.root, set()).update(found.dotted)
    names: set[str] = set()
    for root, modules in dotted.items():
        if place_of(root, folder).kind == "installed":
            names |= _distributions(root, frozenset(modules))
    return tuple(sorted(f"{n}=={_version(n)}" for n in names if n != _OWN))


@lru_cache(maxsize=4096)
def _version(name: str) -> str:
    return metadata.version(name).partition("+")[0]


@lru_cache(maxsize=4096)
def _distributions(root: str, modules: frozenset[str]) -> frozenset[str]:
    """Names of the distributions that these modules come from."""
    try:
        own = metadata.distribution(root)
    except metadata.PackageNotFoundError:
        pass
    else:
        return frozenset({own.name})
    candidates = sorted(set(_by_module().get(root, ())))
    if len(candidates) < 2:
        return frozenset(candidates)
    folders = {m.replace(".", "/") for m in modules if "." in m}
    return frozenset(name for name in candidates if _has(name, folders)) or frozenset(candidates)


def _has(distribution: str, folders: set[str]) -> bool:
    """Whether a distribution has a file of one of these modules."""
    files = metadata.distribution(distribution).files or ()
    paths = {f.as_posix() for f in files}
    return any(f"{f}.py" in paths or f"{f}/__init__.py" in paths for f in folders)


@lru_cache(maxsize=1)
def _by_module() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
