"""Engines that run the replicas of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.engine import docker, sandbox, unpacked
from distrain_nb.rehearsal.engine.bare import BareProcesses
from distrain_nb.rehearsal.engine.replica import (
    GRACE_S,
    Engine,
    Network,
    ReplicaSpec,
    Running,
    share_of_cores,
)

__all__ = [
    "GRACE_S",
    "Engine",
    "Network",
    "ReplicaSpec",
    "Running",
    "choose",
    "fit",
    "share_of_cores",
]


def fit(engine: Engine, images: Iterable[str]) -> Engine:
    """Return the engine for the images of a job: processes where one of them has no base, and so
    no Python of its own."""
    if any(map(unpacked.lacks_base, images)):
        return BareProcesses("the image has no base")
    return engine


def choose(*, bare: bool = False) -> Engine:
    """Return the best engine that this machine has; with `bare`, processes if there is none.

    Raises DistrainError if there is none.
    """
    engine = docker.find() or sandbox.find()
    if engine is not None:
        return engine
    if bare:
        return BareProcesses()
    raise DistrainError(
        "A rehearsal runs the job's image here, which needs Docker, Podman or bubblewrap. "
        "Install one of them, start it if it is a service, and try again."
    )
