"""The values of `CLUSTER_SPEC` and `TF_CONFIG`, by which each replica knows its cluster.

Keys, their order and their values are those of Vertex AI's documentation, "Distributed training".
On SageMaker, keys and ports of `TF_CONFIG` are those that AWS's TensorFlow containers write. Roles
are texts: `primary`, `workers`, `servers`, `reducers`, `evaluators`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

ENVIRONMENT = "cloud"
# The place of a role in Vertex AI's list of worker pools, and what TensorFlow calls it.
POSITIONS = {"primary": 0, "workers": 1, "servers": 2, "reducers": 2, "evaluators": 3}
TASK_TYPES = {
    "primary": "chief",
    "workers": "worker",
    "servers": "ps",
    "reducers": "ps",
    "evaluators": "evaluator",
}

Addresses = Mapping[str, Sequence[str]]


def cluster_spec(
    addresses: Addresses, role: str, index: int, job: Mapping[str, Any], trial: Optional[str]
) -> Dict[str, Any]:
    """`CLUSTER_SPEC` of one replica: `addresses` are `host:port` by role, in order of index; `job`
    is the specification that the job was created from, `trial` a tuning trial's number."""
    pools = {_pool(role): list(address) for role, address in addresses.items() if address}
    task: Dict[str, Any] = {"type": _pool(role), "index": index}
    if trial is not None:
        task["trial"] = trial
    return {
        "cluster": dict(sorted(pools.items())),
        "environment": ENVIRONMENT,
        "task": task,
        "job": dict(job),
    }


def tf_config(
    addresses: Addresses,
    role: str,
    index: int,
    job: Mapping[str, Any],
    trial: Optional[str],
    cloud: str,
) -> Optional[Dict[str, Any]]:
    """`TF_CONFIG` of one replica, None in a job of a single one; `cloud` is the service's own name
    of the cluster, all else as in `cluster_spec`."""
    if sum(map(len, addresses.values())) < 2:
        return None
    tasks = {
        TASK_TYPES[role]: list(address)
        for role, address in addresses.items()
        if address and role != "evaluators"
    }
    task: Dict[str, Any] = {"cloud": cloud, "index": index}
    if trial is not None:
        task["trial"] = trial
    return {
        "cluster": dict(sorted(tasks.items())),
        "environment": ENVIRONMENT,
        "job": dict(job),
        "task": {**task, "type": TASK_TYPES[role]},
    }


def _pool(role: str) -> str:
    return f"workerpool{POSITIONS[role]}"


WORKER_PORT, SERVER_PORT, MIRRORED_PORT = 2222, 2223, 8890


def parameter_servers(
    hosts: Sequence[str], number: int, chief: str, serves: bool = False
) -> Dict[str, Any]:
    """Return TF_CONFIG of one of two processes of host `number`: its parameter server, or else its
    worker.

    `chief` is what the first worker is called: `master` before TensorFlow 2, `chief` since. A
    single host has no server.
    """
    cluster = {chief: _at(hosts[:1], WORKER_PORT)}
    if len(hosts) > 1:
        cluster["ps"] = _at(hosts, SERVER_PORT)
        cluster["worker"] = _at(hosts[1:], WORKER_PORT)
    if serves:
        task = {"index": number, "type": "ps"}
    elif number:
        task = {"index": number - 1, "type": "worker"}
    else:
        task = {"index": 0, "type": chief}
    return {"cluster": cluster, "environment": "cloud", "task": task}


def mirrored(hosts: Sequence[str], number: int) -> Dict[str, Any]:
    """Return TF_CONFIG of the worker of host `number` under MultiWorkerMirroredStrategy."""
    return {
        "cluster": {"worker": _at(hosts, MIRRORED_PORT)},
        "environment": "cloud",
        "task": {"index": number, "type": "worker"},
    }


def _at(hosts: Sequence[str], port: int) -> List[str]:
    return [f"{host}:{port}" for host in hosts]
