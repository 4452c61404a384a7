"""What this machine has that a plan depends on; it comes to the plan with its job."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from distrain_nb.worker.machine import memory
from distrain_nb.worker.machine.gpus import VISIBLE, Gpus, visible

if TYPE_CHECKING:
    from distrain_nb.places.local.plan import LocalJob

GB = 1e9
MUCH = 0.1  # of a GPU; a CUDA context alone takes half a GB
_DEVICE = re.compile(r"/dev/nvidia\d+")


def machine(job: LocalJob) -> dict[str, str]:
    """Return the facts of this machine that a plan reads, as text.

    `cpus` and `gpus` are numbers, `memory` is the bytes that can still be had. `mpirun` is the
    program's path, empty without one. `--require TEXT` says how an installed package differs from
    that requirement of the job. `held` is the memory of GPUs that this process has, empty where it
    is little. For trials that run at once, who starts them adds how many share the CPUs and a GPU.
    """
    return {
        "cpus": str(os.cpu_count() or 1),
        "gpus": str(len(gpus_of(job.environ))),
        "held": _held(job.environ),
        "memory": str(memory.available()),
        "mpirun": shutil.which("mpirun", path=job.environ.get("PATH")) or "",
        **{f"--require {text}": _unlike(text) for text in job.program.required},
    }


def gpus_of(environ: Mapping[str, str]) -> list[str]:
    """Return the GPUs of this machine that a process sees, as `CUDA_VISIBLE_DEVICES` names them.
    Where none can be counted, the variable is believed."""
    return visible(environ, _count() or (sys.maxsize if environ.get(VISIBLE) else 0))


def _count() -> int:
    numbered = sum(1 for _ in Path("/dev").glob("nvidia[0-9]*"))
    if numbered or not Path("/dev/dxg").exists():  # which Windows has for Linux instead
        return numbered
    gpus = Gpus.open()
    return gpus.count if gpus else 0


def _held(environ: Mapping[str, str]) -> str:
    """Say how much of which GPU this process has, where that is enough for ranks to miss it."""
    gpus = Gpus.open() if _uses_gpus() else None
    if gpus is None:
        return ""
    held = enumerate(zip(gpus.held_by(os.getpid(), environ), gpus.offered(environ), strict=True))
    much = [
        f"{held_bytes / GB:.0f} of {gpu.memory / GB:.0f} GB of GPU {n}"
        for n, (held_bytes, gpu) in held
        if held_bytes > MUCH * gpu.memory
    ]
    return ", ".join(much)


def _uses_gpus() -> bool:
    """Return whether this process has opened a GPU, which asking the library would take long for
    otherwise."""
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            if _DEVICE.fullmatch(str(descriptor.readlink())):
                return True
    return False


def _unlike(requirement: str) -> str:
    """Return how what is installed differs from that; empty where it doesn't."""
    try:
        parsed = Requirement(requirement)
        if parsed.marker is not None and not parsed.marker.evaluate():
            return ""
        installed = version(parsed.name)
    except (InvalidRequirement, PackageNotFoundError):
        return "where it is not known to be installed"
    if parsed.specifier.contains(installed, prereleases=True):
        return ""
    return f"where {parsed.name} {installed} is installed"
