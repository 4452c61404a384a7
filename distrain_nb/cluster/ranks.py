"""The variables of each rank: those that torchrun would set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.worker.files.launch import SIGNAL_VARIABLE, TIMEOUT_VARIABLE
from distrain_nb.worker.replica.replica import TRAINING_ROLES, label, place, rendezvous

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.cluster.spec import Cluster
    from distrain_nb.layout import Layout, Role


@dataclass(frozen=True)
class Rank:
    """One process: its place in the world where it has one, and the environment that says so."""

    role: Role
    replica: int
    rank: int | None
    environment: dict[str, str]

    @property
    def label(self) -> str:
        """`rank 3`, `ps 0`, `evaluator 0`."""
        return label(self.role.value, self.replica, self.rank)


def time_limit(layout: Layout) -> dict[str, str]:
    """Return what a replica is told of its end, where its program is to be asked ahead of it."""
    if layout.signal_before is None:
        return {}
    limit = {TIMEOUT_VARIABLE: str(layout.timeout)} if layout.timeout else {}
    return {SIGNAL_VARIABLE: str(layout.signal_before), **limit}


def ranks(cluster: Cluster, per_replica: int, run_id: str) -> Iterator[Rank]:
    """Yield every process of the cluster, those of the world first and in order of rank.

    A training replica has `per_replica` of them, any other replica one. `run_id` is what
    torchrun calls the run's rendezvous id.
    """
    world = [member for member in cluster.members() if member[0].value in TRAINING_ROLES]
    for group, (role, index) in enumerate(world):
        replica = replica_environment(cluster, role, index)
        for local in range(per_replica):
            variables = place(local, per_replica, group, len(world))
            environment = {**replica, **variables, **rendezvous(cluster.primary, run_id)}
            yield Rank(role, index, int(variables["RANK"]), environment)
    for role, index in cluster.members():
        if role.value not in TRAINING_ROLES:
            yield Rank(role, index, None, replica_environment(cluster, role, index))


def replica_environment(cluster: Cluster, role: Role, index: int) -> dict[str, str]:
    """Return `CLUSTER_SPEC`, and `TF_CONFIG` where there is more than one replica."""
    environment = {"CLUSTER_SPEC": json.dumps(cluster.cluster_spec(role, index))}
    tf_config = cluster.tf_config(role, index)
    if tf_config is not None:
        environment["TF_CONFIG"] = json.dumps(tf_config)
    return environment
