"""Slurm, as layouts know it."""

from __future__ import annotations

from distrain_nb.layout.formats.form import Export, TextForm
from distrain_nb.layout.place import RETRIES, described
from distrain_nb.layout.pool import Role
from distrain_nb.places.slurm.forms import IS_SCRIPT, from_script, text

READS = (
    *Role,
    *(f"{role}.machine" for role in Role),
    *("launcher", "ranks_per_replica", "mpi_options", "timeout", "image", "signal_before"),
    *RETRIES,
)

PLACE = described(
    "slurm",
    "Slurm",
    READS,
    exports=(Export("slurm-sbatch", "Script for sbatch", text),),
    readers=(TextForm("a script for Slurm's sbatch", IS_SCRIPT, from_script),),
)
