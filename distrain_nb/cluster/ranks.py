"""The ranks of a cluster: each one's place in the world, and the variables that say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from distrain_nb.cluster.spec import Cluster
from distrain_nb.layout import Layout, Role
from distrain_nb.worker.files.launch import SIGNAL_VARIABLE, TIMEOUT_VARIABLE
from distrain_nb.worker.replica.replica import TRAINING_ROLES, label, place, rendezvous


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
    """Return the variables with the time limit, if the program is asked to end before it."""
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
        meeting = {**replica, **rendezvous(cluster.primary, run_id)}
        for local in range(per_replica):
            numbers = place(local, per_replica, group, len(world))
            yield Rank(role, index, int(numbers["RANK"]), {**meeting, **numbers})
    for role, index in cluster.members():
        if role.value not in TRAINING_ROLES:
            yield Rank(role, index, None, replica_environment(cluster, role, index))


def rank_of(cluster: Cluster, number: int, per_replica: int, run_id: str) -> Rank:
    """Return the rank of the world that has that number."""
    world = [member for member in cluster.members() if member[0].value in TRAINING_ROLES]
    group, local = divmod(number, per_replica)
    role, index = world[group]
    environment = {
        **replica_environment(cluster, role, index),
        **rendezvous(cluster.primary, run_id),
        **place(local, per_replica, group, len(world)),
    }
    return Rank(role, index, number, environment)


def replica_environment(cluster: Cluster, role: Role, index: int) -> dict[str, str]:
    """Return `CLUSTER_SPEC`, and `TF_CONFIG` where there is more than one replica."""
    environment = {"CLUSTER_SPEC": json.dumps(cluster.cluster_spec(role, index))}
    tf_config = cluster.tf_config(role, index)
    if tf_config is not None:
        environment["TF_CONFIG"] = json.dumps(tf_config)
    return environment
