"""The exact request of a job on a Ray cluster, and what the cluster lacks for it."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from distrain_nb.backends.remote.needed_packages import packages_to_install
from distrain_nb.backends.remote.shared_folder import SharedSpec, environment
from distrain_nb.backends.settings import SettingValue, setting_notes, text_of
from distrain_nb.cluster import PER_GPU, choose, process_findings, ranks_per_replica
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout import Layout, Role
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.cell_repairs import in_cell
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.hardware import hardware_of
from distrain_nb.layout.pool import Pool
from distrain_nb.places.ray import demand
from distrain_nb.places.ray.dashboard import DEFAULT, is_http
from distrain_nb.places.ray.options import RayJob, amount, resources, size
from distrain_nb.places.ray.terms import ANY_NODE
from distrain_nb.repairs import with_option
from distrain_nb.types import Json
from distrain_nb.worker.replica import shared
from distrain_nb.worker.supervisor.grace import SAVES_WITHIN_S

VARIABLES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")
CLUSTER, TROUBLE = "cluster", "trouble"  # names in `Job.machine`
# Ray's names of accelerators, where the tables' short ones differ.
_TYPES = {
    "A100_80GB": "A100-80G", "H100_MEGA": "H100", "RTX_PRO_6000": "RTX-PRO-6000",
    "TPU_V2": "TPU-V2", "TPU_V3": "TPU-V3", "TPU_V5E": "TPU-V5LITEPOD", "TPU_V6E": "TPU-V6E",
    "TPU7X": "TPU-V7X",
}  # fmt: skip
ENDING_S = 10.0
_SLICE = 0.001  # Ray's own share of an accelerator's type
_TRAINING = (Role.PRIMARY.value, Role.WORKERS.value)


@dataclass(frozen=True, kw_only=True)
class RaySpec(SharedSpec):
    """`address` is the dashboard's, `credentials` the file of headers; `job` what the driver is
    told. Without a `folder` the job's files come by way of the dashboard."""

    address: str
    credentials: str
    driver: dict[str, Json]
    packages: tuple[str, ...]
    python: str

    @property
    def runtime_env(self) -> dict[str, Json]:
        """What the job's processes have, and how long Ray leaves the driver to end its ranks:
        by itself 3 seconds, in which no checkpoint is saved. Ray's supervisor of the job reads
        that variable."""
        wait = math.ceil(float(str(self.driver["stop"])) + ENDING_S)
        packages: dict[str, Json] = {"pip": list(self.packages)} if self.packages else {}
        return {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(wait)}, **packages}


@dataclass(frozen=True)
class RayPlan:
    """`bundles` are what the replicas need, in their order."""

    job: RayJob
    address: SettingValue
    ranks_per_replica: int
    gpus: int
    bundles: tuple[demand.Bundle, ...]
    findings: tuple[Finding, ...]

    def spec(self) -> RaySpec:
        """Return what the process that carries the run needs to know."""
        job, options = self.job, self.job.options
        spec = RaySpec.for_job(
            job,
            options.folder or ".",
            self.ranks_per_replica,
            address=self.address.value,
            credentials=str(job.folder / options.credentials) if options.credentials else "",
            driver=self._driver(),
            packages=tuple(self._packages()),
            python=options.python,
        )
        return spec if options.folder else replace(spec, folder="")

    def _driver(self) -> dict[str, Json]:
        layout = self.job.layout
        return {
            "bundles": [{"needs": dict(b.needs), "group": b.group} for b in self.bundles],
            "strategy": self.job.options.placement,
            "members": [list(member) for member in _members(self.job)],
            "timeout": layout.timeout or 0,
            "signal_before": layout.signal_before or 0,
            "max_wait": layout.max_wait or 0,
            "stop": stop_seconds(layout),
        }

    def _packages(self) -> Iterator[str]:
        """Yield what was asked for; what else the program imports, the cluster has."""
        imported = replace(self.job.program, requirements=())
        yield from packages_to_install(imported, ())

    def __str__(self) -> str:
        spec = self.spec()
        lines = [f"# {note}\n" for note in setting_notes({"address": self.address})]
        bundles = [{**b.needs, **({"group": b.group} if b.group else {})} for b in self.bundles]
        request: dict[str, object] = {
            "address": self.address.value,
            "submission_id": spec.run,
            "placement_group": {"bundles": bundles, "strategy": self.job.options.placement},
            "runtime_env": {"working_dir": "the program and the worker", **spec.runtime_env},
            "environment": spec.environment,
            "env": sorted(spec.variables),
            "folder": spec.folder or "none: logs and results come by way of the dashboard",
        }
        return "".join(lines) + data_yaml(request)


def stop_seconds(layout: Layout) -> float:
    """Return how long the driver waits for ranks that are told to end: as long as they may take to
    save, and to bring their last words."""
    return max(SAVES_WITHIN_S, layout.signal_before or 0) + ENDING_S


def plan(job: RayJob) -> RayPlan:
    """Plan a job: of the same always the same. Raises OptionError."""
    if job.options.placement not in demand.STRATEGIES:
        allowed = ", ".join(demand.STRATEGIES)
        raise OptionError(f"invalid --placement {job.options.placement!r}: expected {allowed}")
    launcher, gpus, ranks = _processes(job)
    address = address_of(job)
    bundles = _bundles(job, ranks)
    findings = (
        *_about_cluster(job, bundles),
        *(_about_mpi(job) if launcher == "mpi" else ()),
        *_about_retries(job),
        *process_findings(job.program, job.layout, launcher, ranks, gpus),
    )
    return RayPlan(job, address, ranks, gpus, bundles, findings)


def _processes(job: RayJob) -> tuple[str, int, int]:
    """Return the launcher, the processes that a replica's hardware is for, and its ranks."""
    gpus = hardware_of(job.layout).processes
    launcher = job.layout.launcher
    launcher = choose(job.program)[0] if launcher == "auto" else launcher
    return (
        launcher, gpus,
        ranks_per_replica(job.program, job.layout, gpus if launcher in PER_GPU else 1),
    )  # fmt: skip


def address_of(job: RayJob) -> SettingValue:
    """Return the dashboard's address, and where it comes from. Raises OptionError for one with a
    login: a run keeps and shows its address."""
    variables = tuple(name for name in VARIABLES if is_http(job.environ.get(name, "")))
    address = text_of(job, "address", variables, DEFAULT)
    parts = urlsplit(str(address.value))
    if parts.username or parts.password:
        shown = parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}").geturl()
        raise OptionError(
            f"the address {shown} has a login, which a run would keep and show: leave it out, and "
            "put the header Authorization into a file for --credentials"
        )
    return address


def _members(job: RayJob) -> list[tuple[str, int]]:
    return list(shared.replicas(environment(job, 1)[shared.REPLICAS_VARIABLE]))


def _bundles(job: RayJob, ranks: int) -> tuple[demand.Bundle, ...]:
    return tuple(_bundle(job, role, ranks) for role, _ in _members(job))


def _bundle(job: RayJob, role: str, ranks: int) -> demand.Bundle:
    layout, options = job.layout, job.options
    trains = role in _TRAINING
    pool = layout.pool(Role(role)) or (layout.workers if trains else None) or Pool()
    cpus = float(ranks if trains else 1)
    needs = {"CPU": amount(options.cpus, "--cpus") if options.cpus else cpus}
    if pool.accelerator or pool.accelerator_count:
        name = pool.accelerator or "GPU"
        tpu = name.startswith("TPU")
        needs["TPU" if tpu else "GPU"] = float(pool.accelerator_count or 1)
        if name not in ("GPU", "TPU"):
            short = short_name(name)
            needs[demand.TYPE + _TYPES.get(short, short)] = _SLICE
    if options.memory:
        needs["memory"] = float(size(options.memory))
    group = pool.machine if pool.machine not in (None, ANY_NODE) else ""
    return demand.Bundle({**needs, **resources(options.resource)}, group or "")


def nodes_of(machine: Mapping[str, str]) -> list[demand.Node] | None:
    """Return the cluster's nodes as they were when the job was made; None where nobody knows."""
    text = machine.get(CLUSTER)
    return [demand.Node(*row) for row in json.loads(text)] if text else None


def _about_cluster(job: RayJob, bundles: tuple[demand.Bundle, ...]) -> Iterator[Finding]:
    trouble = job.machine.get(TROUBLE)
    if trouble:
        yield Finding("ray.no-answer", Severity.ERROR, "address", trouble)
    nodes, strategy = nodes_of(job.machine), job.options.placement
    if nodes is None or not bundles:
        return
    why = demand.refusal(bundles, strategy, nodes)
    if not why:
        return
    severity = Severity.WARNING if job.options.autoscaling else Severity.ERROR
    where = "workers" if job.layout.workers else "primary"
    fixes = tuple(_repairs(job, bundles, nodes)) if severity is Severity.ERROR else ()
    yield Finding("ray.no-room", severity, where, f"{why}.", fixes)


def _about_mpi(job: RayJob) -> Iterator[Finding]:
    training = [role for role, _ in _members(job) if role in _TRAINING]
    if len(training) > 1 and job.options.placement != demand.SPREAD_OUT:
        message = (
            f"mpirun needs a node for each of the {len(training)} replicas, and --placement "
            f"{job.options.placement} may put two on one: take {demand.SPREAD_OUT}."
        )
        apply = partial(_written, name="--placement", value=demand.SPREAD_OUT)
        fix: Fix[str] = Fix(f"Write `--placement {demand.SPREAD_OUT}`", apply)
        yield Finding("ray.mpi-nodes", Severity.ERROR, "placement", message, (fix,))


def _about_retries(job: RayJob) -> Iterator[Finding]:
    if job.layout.retries and not job.options.folder:
        message = (
            "each attempt begins with an empty AIP_CHECKPOINT_DIR, as nodes keep what they save: "
            "name a folder that all have with --folder, or save to a bucket"
        )
        yield Finding("ray.retries", Severity.WARNING, "retries", message)


def _repairs(
    job: RayJob, bundles: tuple[demand.Bundle, ...], nodes: list[demand.Node]
) -> Iterator[Fix[str]]:
    """Yield what of the cell's text could be otherwise, tried on the cluster."""
    layout, strategy = job.layout, job.options.placement
    for other in ("SPREAD", "PACK"):
        if other != strategy and not demand.refusal(bundles, other, nodes):
            apply = partial(_written, name="--placement", value=other)
            yield Fix(f"Write `--placement {other}`", apply)
            break
    fewer = range(1, layout.workers.replicas if layout.workers else 1)
    # Where some find room, fewer do: a search asks for a handful of a thousand counts.
    most_replicas = bisect_left(fewer, True, key=lambda count: not _fits(job, _with(layout, count)))
    if most_replicas:
        label = f"Take {most_replicas} replica{'s' * (most_replicas > 1)}"
        yield _change(label, layout, _with(layout, most_replicas))
    most = int(max((node.total.get("GPU", 0) for node in nodes), default=0))
    for role, pool_of_role in layout.pools():
        if most and pool_of_role.accelerator_count > most:
            smaller = layout.edited({f"{role.value}.accelerator_count": most})
            if _fits(job, smaller):
                yield _change(f"Take {most} GPUs for each of the {role.value}", layout, smaller)


def _with(layout: Layout, replicas: int) -> Layout:
    return layout.edited({"workers.replicas": replicas})


def _fits(job: RayJob, layout: Layout) -> bool:
    """Return whether the cluster can place a job with that layout, without looking for repairs of
    that one too."""
    smaller = replace(job, layout=layout)
    bundles = _bundles(smaller, _processes(smaller)[2])
    return not demand.refusal(bundles, job.options.placement, nodes_of(job.machine) or ())


def _change(label: str, layout: Layout, smaller: Layout) -> Fix[str]:
    fix: Fix[object] = Fix(label, lambda _: smaller)
    finding = in_cell(Finding("", Severity.INFO, "", "", (fix,)), layout)
    return cast("Fix[str]", finding.fixes[0])


def _written(text: str, name: str, value: str) -> str:
    return with_option(text, [name], f"{name} {value}")
