"""Backends of other packages, known as long as a test runs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb import installed as entry_points
from distrain_nb.backends import plugins
from distrain_nb.layout import place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


@contextmanager
def installed(backend: type[Any], site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have every process know a backend, as that of another package would be."""
    package = site / f"{backend.name}_place-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text(f"Name: {backend.name}-place\nVersion: 1\n")
    entry = f"{backend.name} = {backend.__module__}:{backend.__name__}"
    (package / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{entry}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (site, Path(__file__).parents[1]))))
    entry_points._others.cache_clear()
    yield
    for cache in (entry_points._others, plugins._load):
        cache.cache_clear()
    place._PLACES.pop(backend.name, None)
