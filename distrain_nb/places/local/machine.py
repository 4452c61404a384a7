"""What this machine has that a plan depends on; it comes to the plan with its job."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.places.local.plan import LocalJob


def machine(job: LocalJob) -> dict[str, str]:
    """`cpus` and `gpus` are numbers, `mpirun` is the program's path, empty without one; a
    requirement of the job, `--require TEXT`, has how what is installed differs from it. Where
    `jobs` stands there too, so many share the CPUs."""
    return {
        "cpus": str(os.cpu_count() or 1),
        "gpus": str(len(gpus_of(job.environ))),
        "mpirun": shutil.which("mpirun", path=job.environ.get("PATH")) or "",
        **{f"--require {text}": _unlike(text) for text in job.program.required},
    }


def gpus_of(environ: Mapping[str, str]) -> list[str]:
    """Return the GPUs of this machine that a process sees, as `CUDA_VISIBLE_DEVICES` names them."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [device.strip() for device in visible.split(",") if device.strip()]
    return [str(number) for number, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]


def _unlike(requirement: str) -> str:
    """Return how what is installed differs from that; empty where it doesn't."""
    try:
        wanted = Requirement(requirement)
        if wanted.marker is not None and not wanted.marker.evaluate():
            return ""
        installed = version(wanted.name)
    except (InvalidRequirement, PackageNotFoundError):
        return "where it is not known to be installed"
    if wanted.specifier.contains(installed, prereleases=True):
        return ""
    return f"where {wanted.name} {installed} is installed"
