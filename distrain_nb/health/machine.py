"""Python, frameworks, GPUs and what runs containers."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterator

from distrain_nb import __version__
from distrain_nb.backends.checks import Check, Health, installed
from distrain_nb.backends.notebooks import duration, place
from distrain_nb.config import home
from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal import engine
from distrain_nb.rehearsal.needs import PROGRAMS
from distrain_nb.run.disk_usage import GB, LITTLE, free_bytes
from distrain_nb.worker.machine.gpus import VISIBLE, Gpus

FRAMEWORKS = ("torch", "tensorflow", "tensorflow-cpu", "jax", "horovod")


def local() -> Iterator[Check]:
    """Check what runs on this machine need."""
    yield from _place()
    yield Check("distrain-nb", Health.GOOD, f"{__version__}, Python {platform.python_version()}")
    yield _runs()
    yield _frameworks()
    yield _gpus()
    yield _mpi()


def containers() -> Iterator[Check]:
    """Check what images and rehearsals need."""
    yield _uv()
    yield _engine()
    yield _registry()


def _place() -> Iterator[Check]:
    """Yield the managed notebook that this is, and when it ends."""
    notebook = place(os.environ)
    if notebook is None:
        return
    yield Check("place", Health.GOOD, notebook.title)
    if notebook.idle_s:
        message = f"after {duration(notebook.idle_s)} without activity, by {notebook.idle_source}"
        remedy = "runs on this machine end then; jobs in a cloud without --wait continue"
        yield Check("shut down", Health.GOOD, message, remedy)


def _runs() -> Check:
    """Check where runs are kept, by the nearest folder that exists."""
    folder, (nearest, free) = home(), free_bytes()
    if not os.access(nearest, os.W_OK):
        remedy = "set the variable DISTRAIN_HOME to a folder that you may write"
        return Check("runs", Health.BROKEN, f"{folder} can't be written", remedy)
    if free < LITTLE:
        remedy = "%distrain clean lists what can be deleted; or set DISTRAIN_HOME to another disk"
        return Check("runs", Health.BROKEN, f"{folder}, only {free / GB:.1f} GB free", remedy)
    return Check("runs", Health.GOOD, f"{folder}, {free / GB:.0f} GB free")


def _frameworks() -> Check:
    versions = [(name, installed(name)) for name in FRAMEWORKS]
    present = [f"{name} {number}" for name, number in versions if number]
    if present:
        return Check("frameworks", Health.GOOD, ", ".join(present))
    remedy = "pip install 'distrain-nb[torch]', for example; a cell may do without any"
    return Check("frameworks", Health.MISSING, "no framework that distributes training", remedy)


def _gpus() -> Check:
    gpus, cores = Gpus.open(), f"{os.cpu_count()} cores"
    if gpus is None:
        return Check("processors", Health.GOOD, f"{cores}, no NVIDIA GPU")
    visible = gpus.offered(os.environ)
    if not visible:
        hidden = f"no GPU of {gpus.count}: {VISIBLE} is {os.environ.get(VISIBLE)!r}"
        remedy = f"start the kernel without {VISIBLE}, or with the numbers of those to use"
        return Check("processors", Health.MISSING, f"{cores}, {hidden}", remedy)
    kinds = [f"{n} x {gpu.name} ({gpu.memory / GB:.0f} GB)" for gpu, n in Counter(visible).items()]
    ranks = ": a cell of PyTorch runs a rank on each" * (len(visible) > 1)
    return Check("processors", Health.GOOD, f"{cores}, {', '.join(kinds)}{ranks}")


def _mpi() -> Check:
    program = shutil.which("mpirun")
    if program:
        return Check("mpirun", Health.GOOD, program)
    remedy = "install Open MPI, such as apt-get install openmpi-bin"
    return Check("mpirun", Health.MISSING, "not installed; --launcher mpi needs it", remedy)


def _uv() -> Check:
    try:
        from uv import find_uv_bin

        return Check("uv", Health.GOOD, find_uv_bin())
    except (ImportError, FileNotFoundError):
        remedy = "pip install uv"
        return Check("uv", Health.BROKEN, "not installed; images with packages need it", remedy)


def _engine() -> Check:
    try:
        return Check("containers", Health.GOOD, engine.choose().note)
    except DistrainError as error:
        message, _, remedy = str(error).partition(". ")
        return Check("containers", Health.MISSING, f"{message}.", remedy)


def _registry() -> Check:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program:
        return Check("registry", Health.GOOD, program)
    remedy = "install it, such as apt-get install docker-registry"
    return Check("registry", Health.MISSING, "not installed; --rehearse keeps images in it", remedy)
