"""From a job to the processes that run it on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.job import named
from distrain_nb.cluster import (
    PER_GPU,
    Cluster,
    choose,
    preload,
    process_findings,
    ranks,
    ranks_per_replica,
)
from distrain_nb.cluster.ranks import Rank
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout import Layout, Pool, Role
from distrain_nb.places.local import buckets
from distrain_nb.worker.data.storage import in_bucket
from distrain_nb.worker.files.folder import CHECKPOINTS_FOLDER, MODEL_FOLDER
from distrain_nb.worker.files.launch import RUN, Launch, ProcessSpec
from distrain_nb.worker.machine import threads
from distrain_nb.worker.machine.gpus import VISIBLE, shares, visible
from distrain_nb.worker.reduction import process_groups
from distrain_nb.worker.replica.mpi import custom_options, mpirun

if TYPE_CHECKING:
    from distrain_nb.backends.job import Job
    from distrain_nb.backends.options import NoOptions
    from distrain_nb.types import Json

LocalJob: TypeAlias = "Job[NoOptions]"

# What is set by these is left as it is: JAX's share of a GPU's memory, and its usual value.
_OF_JAX, JAX_TAKES = "XLA_PYTHON_CLIENT_MEM_FRACTION", 0.75
_CHOOSE_NCCL = frozenset(["accelerate", "lightning", "pytorch_lightning"])

# Bytes that a rank takes at least: one that prints and nothing else. So many fit anywhere.
LEAST_MEMORY, ALWAYS_FIT = 6_000_000, 64

# Characters of a variable that is printed on the line of its process.
SHORT = 40

FOLDERS = {
    "AIP_TENSORBOARD_LOG_DIR": "tensorboard",
    "AIP_CHECKPOINT_DIR": CHECKPOINTS_FOLDER,
    "AIP_MODEL_DIR": MODEL_FOLDER,
}


@dataclass(frozen=True)
class LocalPlan:
    """What will be started."""

    job: LocalJob
    launcher: str
    ranks_per_replica: int
    gpus: int
    launch: Launch
    findings: tuple[Finding, ...]
    session: str = ""  # the folder of the session whose ranks run it

    def __str__(self) -> str:
        environments = [process.environment for process in self.launch.processes]
        common = {
            n: v
            for n, v in environments[0].items()
            if all(item.get(n) == v for item in environments)
        }
        lines = [
            f"{len(environments)} processes on this machine, launcher {self.launcher}; each gets:"
        ]
        lines += [f"  {name}={value}" for name, value in common.items()]
        for process, item in zip(self.launch.processes, environments, strict=True):
            settings = [f"{n}={v}" for n, v in item.items() if n not in common]
            short = " ".join(text for text in settings if len(text) <= SHORT)
            lines.append(f"{process.label} ({process.role}, replica {process.replica}): {short}")
            lines += [f"  {text}" for text in settings if len(text) > SHORT]
        return "\n".join(lines).replace("1 processes", "1 process")


def plan(job: LocalJob) -> LocalPlan:
    """Pure: ports and the run's folder stand as `${PORT_n}` and `${RUN}`; what waits for the run is
    known when it is submitted. Raises OptionError."""
    named_launcher, reason = choose(job.program)
    launcher = job.layout.launcher if job.layout.launcher != "auto" else named_launcher
    gpus = int(job.machine.get("gpus", 0))
    split = _split(job, gpus)
    visible = len(split[0].split(",")) if split else gpus
    per_replica = ranks_per_replica(job.program, job.layout, visible if launcher in PER_GPU else 1)
    if per_replica > visible:
        split = ()
    _refuse_too_many(job, per_replica)
    findings = [
        *_findings(job, launcher, gpus),
        *about_packages(job),
        *about_data(job),
        *_about_gpus(job, gpus),
        *process_findings(job.program, job.layout, launcher, per_replica, gpus),
    ]
    if job.layout.launcher == "auto":
        findings.append(_info("launcher.auto", f"launcher {launcher}: {reason}"))
    cluster = _cluster(job)
    placed = tuple(ranks(cluster, per_replica, job.name or "local"))
    sharing = -(-sum(r.rank is not None for r in placed) // gpus) if gpus else 1
    sharing *= int(job.machine.get("trials_per_gpu", 1))
    common = {
        **{name: f"{RUN}/{folder}" for name, folder in FOLDERS.items()},
        **_threads(job, len(placed)),
        **_reducers(cluster),
        **_shared_memory(job, sharing),
    }
    processes = tuple(
        ProcessSpec(
            *(r.label, r.role.value, r.replica, r.rank),
            {**r.environment, **_gpus_of_replica(r, split), **common},
        )
        for r in placed
    )
    launch = Launch(
        processes=processes,
        working_folder=str(job.folder),
        ports=cluster.replicas,
        preload=tuple(preload(job.program, launcher)),
        results=job.results,
        mpirun=_mpirun(job, len(processes)) if launcher == "mpi" else (),
        grace=job.config.grace,
        timeout=job.layout.timeout,
        signal_before=job.layout.signal_before,
        retries=job.layout.retries or 0,
        retried=tuple(filter(None, (job.layout.retry_on or "").split(","))),
        distributes=launcher != "python",
        cost_limit=job.cost_limit[0],
        cost_words=job.cost_limit[1],
    )
    return LocalPlan(job, launcher, per_replica, gpus, launch, tuple(findings))


def _refuse_too_many(job: LocalJob, per_replica: int) -> None:
    """Raise OptionError for more processes than this machine has memory for, before they are laid
    out: that alone takes long and much for a million."""
    processes = job.layout.size + _training(job) * (per_replica - 1)
    most = int(job.machine.get("memory", sys.maxsize)) // LEAST_MEMORY
    if processes > max(most, ALWAYS_FIT):
        by_ranks = per_replica > job.layout.size
        raise OptionError(
            f"{processes:,} processes don't fit on this machine: each takes "
            f"{LEAST_MEMORY // 1_000_000} MB or more, so {most:,} fit at most",
            where="ranks_per_replica" if by_ranks else "workers",
        )


def _cluster(job: LocalJob) -> Cluster:
    addresses: dict[Role, tuple[str, ...]] = {}
    port = 0
    for role, pool in job.layout.pools():
        numbers = range(port, port + pool.replicas)
        addresses[role] = tuple(f"127.0.0.1:${{PORT_{number}}}" for number in numbers)
        port += pool.replicas
    pools = {"workerPoolSpecs": _pool_specs(job.layout)}
    return Cluster(addresses, job.name or "local", pools, job.trial)


def _pool_specs(layout: Layout) -> list[dict[str, Json]]:
    pools: dict[int, Pool] = {role.position: pool for role, pool in layout.pools()}
    return [
        {"machineSpec": {}, "replicaCount": str(pools[n].replicas)} if n in pools else {}
        for n in range(max(pools) + 1)
    ]


def _reducers(cluster: Cluster) -> dict[str, str]:
    addresses = cluster.addresses.get(Role.REDUCERS, ())
    return {process_groups.VARIABLE: ",".join(addresses)} if addresses else {}


def _mpirun(job: LocalJob, processes: int) -> tuple[str, ...]:
    text = job.layout.mpi_options or ""
    try:
        return mpirun(processes, options=custom_options(text))
    except ValueError as error:
        raise OptionError(f"invalid --mpi-options {text!r}: {error}") from None


def _threads(job: LocalJob, processes: int) -> dict[str, str]:
    """Return the variable that gives each rank its share of the cores: nobody gains when each rank
    starts a thread for every core."""
    sharing = processes * int(job.machine.get("jobs", 1))
    if threads.VARIABLE in job.environ or sharing <= 1:
        return {}
    return {threads.VARIABLE: str(max(1, int(job.machine.get("cpus", 1)) // sharing))}


def _split(job: LocalJob, gpus: int) -> tuple[str, ...]:
    """Return the GPUs of each training replica, as of the machine that it stands for. None where
    there are fewer than replicas; a trial has its own of all."""
    replicas = _training(job)
    if job.trial or gpus < replicas:
        return ()
    numbered = {VISIBLE: ",".join(map(str, range(gpus)))}
    return shares(visible({**numbered, **job.environ}, sys.maxsize)[:gpus], replicas)


def _training(job: LocalJob) -> int:
    return job.layout.replicas(Role.PRIMARY) + job.layout.replicas(Role.WORKERS)


def _gpus_of_replica(rank: Rank, split: Sequence[str]) -> dict[str, str]:
    if not split or rank.rank is None:
        return {}
    return {VISIBLE: split[int(rank.environment["GROUP_RANK"])]}


def _shared_memory(job: LocalJob, sharing: int) -> dict[str, str]:
    """Return the settings by which so many ranks fit on a GPU: JAX would take three quarters of
    it for each, TensorFlow all."""
    if sharing < 2:
        return {}
    settings = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    if not any(name in job.environ for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", _OF_JAX)):
        settings[_OF_JAX] = f"{JAX_TAKES / sharing:.2f}"
    return {name: text for name, text in settings.items() if name not in job.environ}


def _about_gpus(job: LocalJob, gpus: int) -> Iterator[Finding]:
    if job.machine.get("held"):
        message = (
            f"the notebook's kernel has {job.machine['held']}, which ranks then lack: delete what "
            "is there and call torch.cuda.empty_cache(), or restart the kernel (JAX keeps three "
            "quarters from its first use on, unless the kernel begins with "
            "%env XLA_PYTHON_CLIENT_PREALLOCATE=false)"
        )
        yield Finding("local.gpu-memory", Severity.WARNING, "", message)
    ranks = _training(job) * ranks_per_replica(job.program, job.layout, 1)
    if 0 < gpus < ranks and _wants_gpus_of_its_own(job):
        plural, device = ("s", f"LOCAL_RANK % {gpus}") if gpus > 1 else ("", "cuda:0")
        message = (
            f"{ranks} ranks share {gpus} GPU{plural}: NCCL refuses that (Duplicate GPU detected), "
            f"and ranks have no device of a LOCAL_RANK from {gpus} on (invalid device ordinal); "
            f"choose -n {gpus}"
        )
        if "jax" not in job.program.imports:
            message += f", or the backend gloo with {device}"
        yield Finding("local.ranks-per-gpu", Severity.WARNING, "ranks_per_replica", message)


def _wants_gpus_of_its_own(job: LocalJob) -> bool:
    """Return whether each rank of the program takes the GPU of its number, or starts NCCL, by name
    or by what chooses it where there are GPUs."""
    main = job.program.main
    by_number = "cuda" in main and "LOCAL_RANK" in main
    starts = "nccl" in main or "jax.distributed" in main
    return by_number or starts or not _CHOOSE_NCCL.isdisjoint(job.program.imports)


def _findings(job: LocalJob, launcher: str, gpus: int) -> Iterator[Finding]:
    if launcher == "mpi" and not job.machine.get("mpirun"):
        yield _error(
            "launcher.no-mpirun",
            "launcher",
            "mpirun is not installed: the package openmpi-bin has it",
        )
    if launcher == "mpi" and job.layout.size != _training(job):
        yield _error("launcher.mpi-roles", "launcher", "launcher mpi has no servers or evaluators")
    if launcher == "parameter-server":
        message = "launcher parameter-server is SageMaker's; here it is tensorflow with --servers"
        yield _error("launcher.not-local", "launcher", message)
    if job.layout.reducers is not None:
        yield from _about_reducers(launcher, gpus)
    if sys.platform != "linux":
        yield Finding("local.platform", Severity.WARNING, "", "tested on Linux only")


def _about_reducers(launcher: str, gpus: int) -> Iterator[Finding]:
    if launcher != "torchrun":
        message = (
            "reducers sum for torch.distributed: leave --reducers out with launcher "
            f"{launcher}, or choose --launcher torchrun"
        )
        yield _error("local.reducers", "reducers", message)
    elif gpus:
        message = (
            "reducers sum tensors on the CPU with the backend gloo; those on GPUs are exchanged by "
            "NCCL as without reducers"
        )
        yield Finding("local.reducers-gpus", Severity.WARNING, "reducers", message)


def about_packages(job: LocalJob) -> Iterator[Finding]:
    """Yield findings about requirements that ranks don't meet: they run with the notebook's
    packages."""
    for text in job.program.required:
        where = f"--require {text}"
        version = job.machine.get(where)
        if version:
            message = (
                f"ranks run with the packages of this machine, {version}: %pip install {text!r}"
            )
            yield Finding("local.require", Severity.WARNING, where, message)


def about_data(job: LocalJob) -> Iterator[Finding]:
    for name, uri in named(job.data):
        if in_bucket(uri):
            message = (
                f"before the run starts, {uri} is downloaded to {buckets.place(uri)}; files that "
                "are already there are skipped"
            )
            yield Finding("local.data", Severity.INFO, f"--data {name}", message)


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(code, Severity.ERROR, where, message)


def _info(code: str, message: str) -> Finding:
    return Finding(code, Severity.INFO, "", message)
