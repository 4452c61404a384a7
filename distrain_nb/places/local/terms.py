"""This machine, as layouts know it."""

from __future__ import annotations

from distrain_nb.layout.place import RETRIES, Place
from distrain_nb.layout.pool import Role

PLACE = Place(
    "local",
    "this machine",
    tuple(Role),
    frozenset(
        ["launcher", "ranks_per_replica", "mpi_options", "timeout", "signal_before", *RETRIES]
    ),
    implies_primary=True,
)
