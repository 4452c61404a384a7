"""One rank of a program in a container that AWS's own toolkit has started: script mode.

There the launcher is SageMaker's, and the process that it starts is a rank already. `main` runs the
program in `DISTRAIN_PROGRAM` as that rank: what it prints is labelled with the rank as in a
container of ours, and the results of rank 0 are kept.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Mapping, Optional

from distrain_nb.worker.files.launch import SIGNAL_VARIABLE, TIMEOUT_VARIABLE, Launch, ProcessSpec
from distrain_nb.worker.replica import container
from distrain_nb.worker.replica.replica import SAGEMAKER_PORT, label, place, rendezvous

_MPI = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}


def main() -> int:
    """Run the program to its end and give the process's exit status."""
    container.prepare()
    return container.run(_launch(os.environ))


def _launch(environment: Mapping[str, str]) -> Launch:
    spec = _spec(environment)
    names = environment.get("DISTRAIN_RESULTS", "") if spec.rank == 0 else ""
    results = tuple(filter(None, names.split(",")))
    limit, before = (container.seconds(name) for name in (TIMEOUT_VARIABLE, SIGNAL_VARIABLE))
    launch = Launch((spec,), os.getcwd(), results=results, grace=container.grace())
    return replace(launch, timeout=limit, signal_before=before)


def _spec(environment: Mapping[str, str]) -> ProcessSpec:
    """Return this process's rank, as `mpirun`, torchrun or TensorFlow's variable says, else its
    host's.

    Raises KeyError outside of SageMaker's containers.
    """
    hosts = json.loads(environment["SM_HOSTS"])
    host = hosts.index(environment["SM_CURRENT_HOST"])
    role, replica = ("workers", host - 1) if host else ("primary", 0)
    rank: Optional[int] = host
    variables: Mapping[str, str] = {}
    if _MPI["RANK"] in environment:
        variables = {name: environment[variable] for name, variable in _MPI.items()}
        rank = int(variables["RANK"])
    elif "RANK" in environment:
        rank = int(environment["RANK"])
    else:
        this = place(0, 1, host, len(hosts))
        variables = {**this, **rendezvous(f"{hosts[0]}:{SAGEMAKER_PORT}", "distrain")}
    return ProcessSpec(label(role, replica, rank), role, replica, rank, dict(variables))


if __name__ == "__main__":
    sys.exit(main())
