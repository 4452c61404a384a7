"""`CLUSTER_SPEC` and `TF_CONFIG`: how each replica knows its cluster.

Keys, their order and their values are those of Vertex AI's documentation, "Distributed training".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.layout import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENVIRONMENT = "cloud"

_TASK_TYPES = {
    Role.PRIMARY: "chief",
    Role.WORKERS: "worker",
    Role.SERVERS: "ps",
    Role.REDUCERS: "ps",
    Role.EVALUATORS: "evaluator",
}


@dataclass(frozen=True)
class Cluster:
    """The members of a cluster: the addresses (`host:port`) of each role's replicas, in order of
    index.

    `id` is the service's own name of the cluster, `job` the specification that the job was created
    from, and `trial` the number of the tuning trial, from 1, where there is one.
    """

    addresses: Mapping[Role, tuple[str, ...]]
    id: str
    job: Mapping[str, Any]
    trial: str | None = None

    @property
    def replicas(self) -> int:
        return sum(len(addresses) for addresses in self.addresses.values())

    @property
    def primary(self) -> str:
        return self.addresses[Role.PRIMARY][0]

    def members(self) -> Iterator[tuple[Role, int]]:
        """Yield each replica's role and index, in the order of the worker pools."""
        for role in Role:
            for index in range(len(self.addresses.get(role, ()))):
                yield role, index

    def cluster_spec(self, role: Role, index: int) -> dict[str, Any]:
        """Return the value of `CLUSTER_SPEC` for one replica."""
        pools = {_pool(r): list(a) for r, a in self.addresses.items() if a}
        task: dict[str, Any] = {"type": _pool(role), "index": index}
        if self.trial is not None:
            task["trial"] = self.trial
        return {
            "cluster": dict(sorted(pools.items())),
            "environment": ENVIRONMENT,
            "task": task,
            "job": dict(self.job),
        }

    def tf_config(self, role: Role, index: int) -> dict[str, Any] | None:
        """Return the value of `TF_CONFIG`; None in a job of a single replica, which has none."""
        if self.replicas < 2:
            return None
        tasks = {
            _TASK_TYPES[r]: list(a)
            for r, a in self.addresses.items()
            if a and r is not Role.EVALUATORS
        }
        task: dict[str, Any] = {"cloud": self.id, "index": index}
        if self.trial is not None:
            task["trial"] = self.trial
        return {
            "cluster": dict(sorted(tasks.items())),
            "environment": ENVIRONMENT,
            "job": dict(self.job),
            "task": {**task, "type": _TASK_TYPES[role]},
        }


def _pool(role: Role) -> str:
    return f"workerpool{role.position}"
