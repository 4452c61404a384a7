"""Ray, as layouts know it."""

from __future__ import annotations

from dataclasses import replace

from distrain_nb.layout.place import RETRIES, PoolGpus, described
from distrain_nb.layout.pool import Pool, Role

ANY_NODE = "node"

READS = (
    *Role,
    *(f"{Role.PRIMARY}.{field}" for field in ("machine", "accelerator", "accelerator_count")),
    *("launcher", "mpi_options", "ranks_per_replica", "timeout", "max_wait", "signal_before"),
    *RETRIES,
)


def _with_gpus(pool: Pool, count: int) -> Pool:
    name = "GPU" if count else None
    return replace(
        pool, machine=ANY_NODE if count else None, accelerator=name, accelerator_count=count
    )


PLACE = described(
    "ray", "Ray", READS, pool_gpus=PoolGpus(lambda pool: pool.accelerator_count, _with_gpus)
)
