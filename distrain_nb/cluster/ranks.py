"""What each rank is told: the variables that torchrun would set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.cluster.spec import Cluster

# Those whose ranks form the world; the others serve it or watch it.
TRAINING_ROLES = (Role.PRIMARY, Role.WORKERS)

_TITLES = {Role.SERVERS: "ps", Role.EVALUATORS: "evaluator", Role.REDUCERS: "reducer"}


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
        if self.rank is not None:
            return f"rank {self.rank}"
        return f"{_TITLES[self.role]} {self.replica}"


def ranks(cluster: Cluster, per_replica: int, run_id: str) -> Iterator[Rank]:
    """Every process of the cluster, those of the world first and in order of rank.

    A training replica has `per_replica` of them, any other replica one. `run_id` is what
    torchrun calls the run's rendezvous id.
    """
    world = [member for member in cluster.members() if member[0] in TRAINING_ROLES]
    for group, (role, index) in enumerate(world):
        replica = replica_environment(cluster, role, index)
        for local in range(per_replica):
            rank = group * per_replica + local
            place = _place(rank, local, per_replica, group, len(world))
            environment = {**replica, **place, **_rendezvous(cluster, run_id)}
            yield Rank(role, index, rank, environment)
    for role, index in cluster.members():
        if role not in TRAINING_ROLES:
            yield Rank(role, index, None, replica_environment(cluster, role, index))


def replica_environment(cluster: Cluster, role: Role, index: int) -> dict[str, str]:
    """`CLUSTER_SPEC`, and `TF_CONFIG` where there is more than one replica."""
    environment = {"CLUSTER_SPEC": json.dumps(cluster.cluster_spec(role, index))}
    tf_config = cluster.tf_config(role, index)
    if tf_config is not None:
        environment["TF_CONFIG"] = json.dumps(tf_config)
    return environment


def _place(rank: int, local: int, per_replica: int, group: int, groups: int) -> dict[str, str]:
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": groups * per_replica,
        "LOCAL_WORLD_SIZE": per_replica,
        "GROUP_RANK": group,
        "GROUP_WORLD_SIZE": groups,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": groups * per_replica,
    }
    return {name: str(number) for name, number in numbers.items()}


def _rendezvous(cluster: Cluster, run_id: str) -> dict[str, str]:
    host, _, port = cluster.primary.rpartition(":")
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "ROLE_NAME": "default",
        "TORCHELASTIC_RUN_ID": run_id,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    }
