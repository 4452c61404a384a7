"""Distributions that advice chooses from, and versions of frameworks that have them."""

from __future__ import annotations

from distrain_nb.layout.case import Case
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.releases import older, releases

PARAMETER_SERVERS, HOROVOD = "parameter servers", "Horovod"
ONE_INSTANCE = "Horovod on one instance"
DDP, DDP_ONE_INSTANCE = "torchrun with DDP", "torchrun with DDP on one instance"
DDP_BY_MPI = "mpi with DDP"
NO_DISTRIBUTION, UNDECIDED = "no distribution", "not decided"

LAUNCHERS = {
    HOROVOD: "mpi",
    ONE_INSTANCE: "mpi",
    DDP: "torchrun",
    DDP_ONE_INSTANCE: "torchrun",
    DDP_BY_MPI: "mpi",
    PARAMETER_SERVERS: "parameter-server",
}
ON_ONE = (ONE_INSTANCE, DDP_ONE_INSTANCE)

# Distributions to try if the rules refuse a choice.
NEXT = {HOROVOD: (PARAMETER_SERVERS,), PARAMETER_SERVERS: (HOROVOD,), DDP: (DDP_BY_MPI,)}

# Names in the table of distributions, which has their versions.
_TABLE_NAMES = {PARAMETER_SERVERS: "parameter_server", HOROVOD: "mpi", ONE_INSTANCE: "mpi"}


def has_pytorch(case: Case) -> bool:
    """Return whether a case has PyTorch, so that DDP can start its ranks."""
    return case.framework in ("pytorch", "huggingface")


def too_old(case: Case, choice: str) -> str:
    """Return why the framework's version is too old for a choice; empty if it is not."""
    least = oldest_version(case, choice)
    if not older(case.framework_version, least):
        return ""
    return f"{choice} needs {case.framework} {least} or newer, not {case.framework_version}"


def oldest_version(case: Case, choice: str) -> str:
    """Return the first version of the framework with a choice; empty if none is known."""
    row = current().distributions.get(_TABLE_NAMES.get(choice, ""))
    return next(iter(releases(row.framework_min, case.framework)), "") if row else ""
