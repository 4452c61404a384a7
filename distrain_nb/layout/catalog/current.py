"""The current catalog: the shipped tables under the rows of the user's own file.

The file is `catalog.yaml` in DISTRAIN_HOME (default `~/.distrain`). It maps names of tables to
lists of rows, each a mapping of columns to values; `docs/layouts.md` describes it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.tables import TABLES, Catalog


def overrides_file() -> Path:
    """Return where the user's own rows are read from, whether or not the file is there."""
    return Path(_path(os.environ.get("DISTRAIN_HOME")))


def current() -> Catalog:
    """Return the catalog, read again when the user's file has changed.

    Raises OptionError naming the file and the place, when the file can't be used.
    """
    path = _path(os.environ.get("DISTRAIN_HOME"))
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return _shipped()
    return _overridden(path, changed)


# asked for many times a check, so kept as text for each DISTRAIN_HOME
@lru_cache(maxsize=4)
def _path(_home: str | None) -> str:
    from distrain_nb.config import own_home

    return str(own_home() / "catalog.yaml")


@lru_cache(maxsize=1)
def _shipped() -> Catalog:
    return Catalog()


# a file that has changed is another entry: that is what `changed` is for
@lru_cache(maxsize=1)
def _overridden(path: str, changed: int) -> Catalog:  # noqa: ARG001
    import yaml

    try:
        catalog = Catalog(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
        for name in TABLES:
            catalog.table(name)
    except (OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise OptionError(f"{path}: {error}") from None
    return catalog
