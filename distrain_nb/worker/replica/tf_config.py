"""`TF_CONFIG` on SageMaker: keys and ports are those that AWS's TensorFlow containers write."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

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
