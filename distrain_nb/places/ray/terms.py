"""Ray, as layouts know it."""

from __future__ import annotations

from distrain_nb.layout.place import RETRIES, described
from distrain_nb.layout.pool import Role

READS = (
    *Role,
    *(f"{Role.PRIMARY}.{field}" for field in ("machine", "accelerator", "accelerator_count")),
    *("launcher", "mpi_options", "ranks_per_replica", "timeout", "max_wait", "signal_before"),
    *RETRIES,
)

PLACE = described("ray", "Ray", READS)
