"""A replica's place in its cluster, and the variables that its ranks get."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from distrain_nb.worker.files.launch import ProcessSpec
from distrain_nb.worker.reduction.process_groups import VARIABLE as REDUCERS_VARIABLE
from distrain_nb.worker.supervisor.retries import ATTEMPT_VARIABLE, RETRIES_VARIABLE, variables

# SageMaker tells an algorithm's container of its hosts here.
SAGEMAKER_RESOURCES = Path("/opt/ml/input/config/resourceconfig.json")
# SageMaker's own containers let PyTorch meet on this port.
SAGEMAKER_PORT = 7777

ROLES = {
    "workerpool0": "primary",
    "workerpool1": "workers",
    "workerpool2": "servers",
    "workerpool3": "evaluators",
}

TITLES = {"servers": "ps", "reducers": "reducer", "evaluators": "evaluator"}

# Those whose ranks form the world; the others serve it or watch it.
TRAINING_ROLES = ("primary", "workers")


@dataclass(frozen=True)
class Replica:
    """`group` is its number among the training replicas, None for those that don't train.

    `addresses` are those of the training replicas, `host:port`, the primary's first.
    """

    role: str
    index: int
    group: Optional[int]
    addresses: Tuple[str, ...]

    @property
    def hosts(self) -> Tuple[str, ...]:
        """The names of the training replicas' hosts."""
        return tuple(address.rpartition(":")[0] for address in self.addresses)

    @classmethod
    def read(cls, environment: Mapping[str, str], resources: Path = SAGEMAKER_RESOURCES) -> Replica:
        """Read the replica from `CLUSTER_SPEC`, or from SageMaker's file on the hosts.

        Without either it is the only replica, on a port that is found.
        """
        if "CLUSTER_SPEC" in environment:
            replica = cls._of_cluster_spec(json.loads(environment["CLUSTER_SPEC"]))
            # Servers and reducers share that pool. A job with reducers has no parameter servers.
            reduces = replica.role == "servers" and environment.get(REDUCERS_VARIABLE)
            return replace(replica, role="reducers") if reduces else replica
        if resources.exists():
            return cls._of_hosts(json.loads(resources.read_text(encoding="utf-8")))
        return cls("primary", 0, 0, ("127.0.0.1:${PORT_0}",))

    @classmethod
    def _of_hosts(cls, resources: Mapping[str, Any]) -> Replica:
        """Make the replica of SageMaker's hosts: every host trains; the first by name is the
        primary."""
        hosts = sorted(resources["hosts"])
        number = hosts.index(resources["current_host"])
        role, index = ("workers", number - 1) if number else ("primary", 0)
        return cls(role, index, number, tuple(f"{h}:{SAGEMAKER_PORT}" for h in hosts))

    @classmethod
    def _of_cluster_spec(cls, spec: Mapping[str, Any]) -> Replica:
        cluster, pool, index = spec["cluster"], spec["task"]["type"], int(spec["task"]["index"])
        groups = {"workerpool0": index, "workerpool1": 1 + index}
        addresses = (*cluster["workerpool0"], *cluster.get("workerpool1", ()))
        return cls(ROLES[pool], index, groups.get(pool), addresses)

    def processes(self, per_replica: int, run_id: str) -> Tuple[ProcessSpec, ...]:
        """Return the replica's processes: `per_replica` ranks where it trains, else one without a
        rank."""
        if self.group is None:
            name = label(self.role, self.index, None)
            return (ProcessSpec(name, self.role, self.index, None, {}),)
        meeting = {**rendezvous(self.addresses[0], run_id), **_attempt()}
        ranks = []
        for local in range(per_replica):
            numbers = place(local, per_replica, self.group, len(self.addresses))
            rank = int(numbers["RANK"])
            name = label(self.role, self.index, rank)
            ranks.append(ProcessSpec(name, self.role, self.index, rank, {**numbers, **meeting}))
        return tuple(ranks)


def _attempt() -> Dict[str, str]:
    """Return the variables that describe an attempt to the ranks of a job that is sent again."""
    if ATTEMPT_VARIABLE not in os.environ:
        return {}
    return variables(int(os.environ[ATTEMPT_VARIABLE]), int(os.environ.get(RETRIES_VARIABLE, "0")))


def label(role: str, index: int, rank: Optional[int]) -> str:
    """Return the name of a process in logs and reports: `rank 3`, `ps 0`, `evaluator 0`."""
    return f"rank {rank}" if rank is not None else f"{TITLES[role]} {index}"


def place(local: int, per_replica: int, group: int, groups: int) -> Dict[str, str]:
    """Return the variables that number a rank, as torchrun sets them."""
    rank, world = group * per_replica + local, groups * per_replica
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": per_replica,
        "GROUP_RANK": group,
        "GROUP_WORLD_SIZE": groups,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world,
    }
    return {name: str(number) for name, number in numbers.items()}


def rendezvous(primary: str, run_id: str) -> Dict[str, str]:
    """Return the variables with which ranks find each other, as torchrun sets them."""
    host, _, port = primary.rpartition(":")
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "ROLE_NAME": "default",
        "TORCHELASTIC_RUN_ID": run_id,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
    }
