"""The facts that layouts are checked against, shipped as data files with their sources."""

from __future__ import annotations

from distrain_nb.layout.catalog.current import current, overrides_file
from distrain_nb.layout.catalog.index import accelerator_name, short_name
from distrain_nb.layout.catalog.lookup import Grid, Lookup, query
from distrain_nb.layout.catalog.tables import TABLES, Catalog

__all__ = [
    "TABLES",
    "Catalog",
    "Grid",
    "Lookup",
    "accelerator_name",
    "current",
    "overrides_file",
    "query",
    "short_name",
]
