"""Entry point of images: starts the ranks of this replica, prints its log, returns its exit status.

Arguments go to the program, behind its own arguments. A study's trial has its values there:
`--lr=0.01`. In a tuning job of SageMaker, `DISTRAIN_TUNED` names the hyperparameters that become
arguments.

These variables describe the program. `DISTRAIN_PROGRAM` is its folder. `DISTRAIN_PACKAGES` is a
folder of packages that were added to the image. `DISTRAIN_PRELOAD` are modules, separated by
commas, to import before ranks are forked. `DISTRAIN_RESULTS` are names of rank 0, separated by
commas, to save below the folder `DISTRAIN_OUTPUT`. A folder in Cloud Storage, `gs://…`, is read
where Vertex AI mounts it, `/gcs/…`.

`DISTRAIN_RANKS` is the number of ranks of a training replica (default: one), or the number for each
machine type (`TYPE=N,TYPE=N`). `DISTRAIN_LAUNCHER` says how they start. With `mpi`, `mpirun` starts
them, from the primary also those of other replicas. It gets the options of `DISTRAIN_MPI_OPTIONS`.
With `tensorflow`, ranks get the `TF_CONFIG` of mirrored workers if the service sets none. With
`parameter-server`, each replica has a worker and a parameter server. With all others, such as
`torchrun` and `python`, ranks are forked.

`replica/shared.py` has the variables of replicas that share a folder. With `DISTRAIN_SESSION`,
ranks stay for the cells of a session: `replica/member.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from typing import Tuple

from distrain_nb.worker.files.launch import SIGNAL_VARIABLE, TIMEOUT_VARIABLE, Launch, ProcessSpec
from distrain_nb.worker.files.status import State
from distrain_nb.worker.rank.arguments import ARGUMENTS_VARIABLE
from distrain_nb.worker.replica import (
    container,
    contracts,
    member,
    mpi,
    sagemaker,
    shared,
)
from distrain_nb.worker.replica.rank_count import VARIABLE, per_replica
from distrain_nb.worker.replica.replica import Replica
from distrain_nb.worker.supervisor import parameter_server


def main() -> int:
    """Run this replica to its end. Return the container's exit status."""
    arguments = sys.argv[1:]
    if arguments and not (arguments == sagemaker.COMMAND and sagemaker.is_training_job()):
        os.environ[ARGUMENTS_VARIABLE] = json.dumps(arguments)
    container.prepare()
    if _launcher() == "mpi" and shutil.which("mpirun") is None:
        container.report(
            "launcher mpi needs mpirun, which this image does not have: take a base image with "
            "Open MPI (Debian's package is openmpi-bin)"
        )
        return container.EXIT_STATUS[State.FAILED]
    replica = Replica.read(os.environ)
    twice = [host for host in replica.hosts if replica.hosts.count(host) > 1]
    if _launcher() == "mpi" and twice:
        container.report(
            f"launcher mpi needs a host for each replica, and {twice.count(twice[0])} of them are "
            f"on {twice[0]}: place them on hosts of their own, or take one with more ranks"
        )
        return container.EXIT_STATUS[State.FAILED]
    launch = _launch(replica)
    return member.run(launch) if shared.SESSION_VARIABLE in os.environ else container.run(launch)


def _launcher() -> str:
    return os.environ.get("DISTRAIN_LAUNCHER", "")


def _launch(replica: Replica) -> Launch:
    launcher = _launcher()
    ranks = per_replica(os.environ.get(VARIABLE, "1"), sagemaker.instance_type())
    processes = replica.processes(ranks, os.environ.get("DISTRAIN_RUN", "distrain"))
    names = os.environ.get("DISTRAIN_RESULTS", "") if replica.role == "primary" else ""
    results = tuple(filter(None, names.split(",")))
    launch = Launch(processes, os.getcwd(), ports=1, results=results, grace=container.grace())
    limit, before = (container.seconds(name) for name in (TIMEOUT_VARIABLE, SIGNAL_VARIABLE))
    launch = replace(launch, timeout=limit, signal_before=before)
    served = "\n".join(shared.served_folders(replica.role))
    launch = replace(launch, distributes=launcher != "python", follows=served)
    if replica.group is None:
        return launch
    if launcher == "mpi":
        return _by_mpirun(launch, replica, ranks)
    if launcher == "parameter-server":
        return _with_server(launch, replica, replica.group)
    if launcher == "tensorflow" and len(replica.hosts) > 1 and "TF_CONFIG" not in os.environ:
        config = json.dumps(contracts.mirrored(replica.hosts, replica.group))
        return replace(launch, processes=_with_tf_config(processes, config))
    return launch


def _by_mpirun(launch: Launch, replica: Replica, ranks: int) -> Launch:
    """Return the launch for `mpirun`: the primary starts all ranks, the other replicas wait."""
    if replica.group:
        return replace(launch, awaits=replica.addresses[replica.group])
    options = mpi.custom_options(os.environ.get("DISTRAIN_MPI_OPTIONS", ""))
    hosts = replica.hosts
    command = mpi.mpirun(ranks * len(hosts), hosts, options, sagemaker.interface())
    return replace(launch, mpirun=command)


def _with_server(launch: Launch, replica: Replica, group: int) -> Launch:
    """Return a launch with a worker and, if there are several hosts, a parameter server."""
    hosts, chief = replica.hosts, parameter_server.chief()
    config = json.dumps(contracts.parameter_servers(hosts, group, chief))
    launch = replace(launch, processes=_with_tf_config(launch.processes, config))
    if len(hosts) == 1:
        return launch
    config = json.dumps(contracts.parameter_servers(hosts, group, chief, serves=True))
    server = ProcessSpec(f"ps {group}", "servers", group, None, {"TF_CONFIG": config}, serves=True)
    launch = replace(launch, processes=(*launch.processes, server))
    if group:
        return replace(launch, follows=replica.addresses[0])
    return replace(launch, holds=replica.addresses[0])


def _with_tf_config(processes: Tuple[ProcessSpec, ...], text: str) -> Tuple[ProcessSpec, ...]:
    return tuple(replace(p, environment={**p.environment, "TF_CONFIG": text}) for p in processes)


if __name__ == "__main__":
    sys.exit(main())
