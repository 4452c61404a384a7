"""Slurm, as layouts know it."""

from __future__ import annotations

from dataclasses import replace

from distrain_nb.layout.formats.form import Export, TextForm
from distrain_nb.layout.place import RETRIES, PoolGpus, described
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.places.slurm.forms import IS_SCRIPT, from_script, gpus, text

READS = (
    *Role,
    *(f"{role}.machine" for role in Role),
    *("launcher", "ranks_per_replica", "mpi_options", "timeout", "image", "signal_before"),
    *RETRIES,
)


def _with_gpus(pool: Pool, count: int) -> Pool:
    machine = f"gpu:{count}" if count else None
    return replace(pool, machine=machine, accelerator=None, accelerator_count=0)


PLACE = described(
    "slurm",
    "Slurm",
    READS,
    exports=(Export("slurm-sbatch", "Script for sbatch", text),),
    readers=(TextForm("a script for Slurm's sbatch", IS_SCRIPT, from_script),),
    pool_gpus=PoolGpus(lambda pool: gpus(pool.machine or ""), _with_gpus),
)
