"""A replica of a job whose replicas share a folder: how it is started, and what it leaves there.

The folder has `code/program` and `code/worker`, `variables.json` with the environment of every
replica, `output/` for what the program leaves, and `replicas/INDEX` for each replica: its log with
the times of its lines and its status. `DISTRAIN_JOB` is the folder, `DISTRAIN_INDEX` the
number of this replica among all, in the order of `DISTRAIN_REPLICAS`: `primary=1,workers=3`.
`DISTRAIN_HOSTS` are names of their hosts, each with or without a port; without names, each replica
says its own. `DISTRAIN_ATTEMPT` counts from 1 where a job is started again.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import EVENTS_FOLDER
from distrain_nb.worker.machine import ports
from distrain_nb.worker.reduction.process_groups import VARIABLE as REDUCERS_VARIABLE
from distrain_nb.worker.replica import contracts
from distrain_nb.worker.replica.replica import TRAINING_ROLES
from distrain_nb.worker.supervisor.retries import ATTEMPT_VARIABLE

JOB_VARIABLE, INDEX_VARIABLE, REPLICAS_VARIABLE = (
    "DISTRAIN_JOB", "DISTRAIN_INDEX", "DISTRAIN_REPLICAS",
)  # fmt: skip
HOSTS_VARIABLE = "DISTRAIN_HOSTS"
SESSION_VARIABLE = "DISTRAIN_SESSION"  # `member.py`: seconds without an order until it ends

CODE, OUTPUT, VARIABLES, REPLICAS = "code", "output", "variables.json", "replicas"
DELIVERED = "delivered"  # in a replica's folder: its results are in the output
ADDRESSES, ALL = "addresses", "all"
# Replicas of a large job come up minutes apart.
ALL_ARE_UP_WITHIN_S = 1800.0
LOOK_FIRST_S, LOOK_AT_LEAST_EVERY_S = 0.05, 1.0
LOOK_SELDOM_FROM = 256  # replicas: more of them look as often all together as so many

_held: List[ports.HeldPort] = []  # for as long as this process lives


class NotUp(Exception):
    """Some replicas of the job have not come up."""


def is_member() -> bool:
    """Return whether this process is to start a replica of such a job."""
    return JOB_VARIABLE in os.environ


def prepare() -> None:
    """Have the variables of a replica in this process's environment. Raises NotUp."""
    job = Path(os.environ[JOB_VARIABLE])
    os.environ.update(json.loads((job / VARIABLES).read_text(encoding="utf-8")))
    os.environ["DISTRAIN_PROGRAM"] = str(job / CODE / "program")
    for name, folder in output_folders(job).items():
        os.environ.setdefault(name, folder)
    members = list(replicas(os.environ.get(REPLICAS_VARIABLE, "primary=1")))
    index = int(os.environ.get(INDEX_VARIABLE, "0"))
    addresses = _addresses(job, index, len(members))
    by_role: Dict[str, List[str]] = {}
    for (role, _), address in zip(members, addresses):
        by_role.setdefault(role, []).append(address)
    if "reducers" in by_role:
        os.environ[REDUCERS_VARIABLE] = ",".join(by_role["reducers"])
    role, number = members[index]
    trial = os.environ.get("CLOUD_ML_TRIAL_ID")
    spec = contracts.cluster_spec(by_role, role, number, {}, trial)
    os.environ["CLUSTER_SPEC"] = json.dumps(spec)
    config = contracts.tf_config(by_role, role, number, {}, trial, job.name)
    if config is not None:
        os.environ["TF_CONFIG"] = json.dumps(config)


def output_folders(job: Path) -> Dict[str, str]:
    """Return the variables that say where a program leaves what it makes."""
    output = job / OUTPUT
    return {
        "DISTRAIN_OUTPUT": str(output),
        "AIP_MODEL_DIR": str(output / "model"),
        "AIP_CHECKPOINT_DIR": str(output / "checkpoints"),
        "AIP_TENSORBOARD_LOG_DIR": str(output / EVENTS_FOLDER),
    }


def membership() -> Tuple[Path, int, int]:
    """Return the job's folder, the number of this replica, and how many the job has."""
    members = list(replicas(os.environ.get(REPLICAS_VARIABLE, "primary=1")))
    index = int(os.environ.get(INDEX_VARIABLE, "0"))
    return Path(os.environ[JOB_VARIABLE]), index, len(members)


def folder() -> Path:
    """Return where this replica keeps its log and status."""
    return replica_folder(
        Path(os.environ[JOB_VARIABLE]), int(os.environ.get(INDEX_VARIABLE, "0")), _attempt()
    )


def served_folders(role: str) -> Tuple[str, ...]:
    """Return the folders of the replicas that one of that role serves, and ends with: parameter
    servers and the workers that they have wait for work for ever."""
    if not is_member():
        return ()
    members = list(replicas(os.environ.get(REPLICAS_VARIABLE, "primary=1")))
    ends_by_itself = {"primary"} if ("servers", 0) in members else set(TRAINING_ROLES)
    if role in ends_by_itself:
        return ()
    job, leading = Path(os.environ[JOB_VARIABLE]), TRAINING_ROLES if role == "reducers" else ()
    return tuple(
        str(replica_folder(job, number, _attempt()))
        for number, (other, _) in enumerate(members)
        if other == "primary" or other in leading
    )


def replica_folder(job: Path, index: int, attempt: int = 1) -> Path:
    """Return where a replica keeps its log and status in an attempt."""
    return job / REPLICAS / (str(index) if attempt < 2 else f"{index}.{attempt}")


def replicas(text: str) -> Iterator[Tuple[str, int]]:
    """Yield the role of each replica and its index there, of `primary=1,workers=3`."""
    for pool in text.split(","):
        role, _, count = pool.partition("=")
        for index in range(int(count or 1)):
            yield role, index


def _attempt() -> int:
    return int(os.environ.get(ATTEMPT_VARIABLE, "1"))


def _addresses(job: Path, index: int, count: int) -> List[str]:
    """Return `host:port` of all replicas."""
    hosts = list(filter(None, os.environ.get(HOSTS_VARIABLE, "").split(",")))
    if len(hosts) == count and all(":" in host for host in hosts):
        return hosts
    hostname = hosts[index].partition(":")[0] if len(hosts) == count else ""
    _held.append(ports.HeldPort("127.0.0.1" if count == 1 else ""))
    host = hostname or ("127.0.0.1" if count == 1 else _own_host())
    address = f"{host}:{_held[-1].number}"
    return _met(job, index, count, address)


def _own_host() -> str:
    """Return the name of this host; its address where the name is known to nobody."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it asks for the way there
            return str(probe.getsockname()[0])
    return name


def _met(job: Path, index: int, count: int, address: str) -> List[str]:
    """Say where this replica is, and hear it of the others: the first collects what all say, as
    the folder would be read a million times if each of a thousand asked each."""
    attempt = _attempt()
    meeting = job / REPLICAS / (ADDRESSES if attempt < 2 else f"{ADDRESSES}.{attempt}")
    meeting.mkdir(parents=True, exist_ok=True)
    mine, every = meeting / str(index), meeting / ALL
    addresses = {index: address}
    end, pause = time.monotonic() + ALL_ARE_UP_WITHIN_S, LOOK_FIRST_S
    seldom = LOOK_AT_LEAST_EVERY_S * max(1.0, count / LOOK_SELDOM_FROM)
    while True:
        # Each time: a network file system remembers what isn't there until the folder changes.
        replace_file(mine, address.encode())
        if index == 0:
            _hear(meeting, count, addresses)
            if len(addresses) == count:
                texts = [addresses[number] for number in range(count)]
                replace_file(every, "\n".join(texts).encode())
                return texts
        text = _read(every) if index else None
        if text is not None:
            return text.split("\n")
        if time.monotonic() > end:
            _hear(meeting, count, addresses)
            missing = next((n for n in range(count) if n not in addresses), 0)
            raise NotUp(f"replica {missing} of {count} has not come up in half an hour")
        time.sleep(pause)
        pause = min(2 * pause, seldom)


def _hear(meeting: Path, count: int, addresses: Dict[int, str]) -> None:
    """Add the addresses that others have said since."""
    for number in range(count):
        text = None if number in addresses else _read(meeting / str(number))
        if text is not None:
            addresses[number] = text


def _read(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
