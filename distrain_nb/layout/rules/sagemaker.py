"""SageMaker: instances, processes on them, and what a distribution needs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.catalog.index import limit
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair, rule
from distrain_nb.layout.versions import split_framework, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.catalog.rows import Distribution, Instance
    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.placed import Job, Placed

_HERE = ("sagemaker",)
_MODEL = "smdistributed.modelparallel"
_TORCH = "torch_distributed"
_FEW = 6


def distribution_of(layout: Layout, catalog: Catalog) -> Distribution | None:
    """The row of the distribution that a layout names, or that its launcher stands for."""
    if layout.distribution:
        return catalog.distributions.get(layout.distribution)
    rows = catalog.distributions.values()
    return next((row for row in rows if row.launcher and row.launcher == layout.launcher), None)


def slots(instance: Instance) -> int:
    """The most processes that a host runs: its GPUs, its Neuron cores, or else its vCPUs."""
    return instance.gpu_count or instance.neuron_cores or instance.vcpu or 1


def _hosts(job: Job) -> list[Placed]:
    return [placed for placed in job.pools if placed.role in (Role.PRIMARY, Role.WORKERS)]


@rule("instances-missing", "A job has instances.", "SM-API", on=_HERE)
def instances_missing(job: Job) -> Iterator[Problem]:
    if not _hosts(job):
        yield Problem(
            "workers",
            "There are no instances: lay out the workers.",
            lambda: [repair("Use one ml.m5.xlarge", workers=Pool(1, "ml.m5.xlarge"))],
        )


@rule(
    "instances-differ",
    "Where the primary's instance differs from the workers', ranks wait for the slower one.",
    "SM-API",
    on=_HERE,
    severity=Severity.WARNING,
)
def instances_differ(job: Job) -> Iterator[Problem]:
    primary, workers = job.layout.primary, job.layout.workers
    if primary and workers and primary.machine != workers.machine:
        yield Problem(
            "primary.machine",
            f"The primary is {primary.machine}, the workers are {workers.machine}: two instance "
            "groups, in which ranks wait for the slower instance.",
            lambda: [
                repair(f"Use {workers.machine} for both", primary__machine=workers.machine),
                repair(f"Use {primary.machine} for both", workers__machine=primary.machine),
                repair("Remove the primary", primary=None),
            ],
        )


@rule(
    "instance-accelerator",
    "An instance type has its accelerators built in and is given no others.",
    "SM-API",
    on=_HERE,
)
def instance_accelerator(job: Job) -> Iterator[Problem]:
    for placed in _hosts(job):
        if placed.pool.accelerator or placed.pool.accelerator_count:
            yield Problem(
                placed.where("accelerator"),
                f"On SageMaker the accelerators come with the instance type: {_has(placed)}.",
                partial(_own, placed),
            )


def _has(placed: Placed) -> str:
    row = placed.instance
    if row is None or not (row.gpu_count or row.neuron_count):
        return f"{placed.pool.machine} has none"
    count, name = (
        (row.gpu_count, row.gpu_name) if row.gpu_count else (row.neuron_count, row.neuron_name)
    )
    return f"{placed.pool.machine} has {count} x {name}"


def _own(placed: Placed) -> Iterator[Repair]:
    yield repair("Remove the accelerator", **at(placed.role, accelerator=None, accelerator_count=0))


@rule(
    "processes-per-host",
    "A host runs at most as many ranks as it has GPUs, or vCPUs if it has no GPUs.",
    "AWS-BLOG-TF;SM-SDK;SM-DOC-TF",
    on=_HERE,
)
def processes_per_host(job: Job) -> Iterator[Problem]:
    ranks = job.layout.ranks_per_replica
    most = min((slots(p.instance) for p in _hosts(job) if p.instance), default=None)
    if ranks is not None and most is not None and ranks > most:
        yield Problem(
            "ranks_per_replica",
            f"{ranks} processes per host do not fit: the instance has {most} slots.",
            lambda: [repair(f"Run {most} processes per host", ranks_per_replica=most)],
        )


@rule("distribution-unknown", "The distribution is one of SageMaker's.", "SM-SDK", on=_HERE)
def distribution_unknown(job: Job) -> Iterator[Problem]:
    name = job.layout.distribution
    if name and name not in job.catalog.distributions:
        known = ", ".join(job.catalog.distributions)
        yield Problem(
            "distribution", f"{name} is not a distribution; choose one of {known}.", _none
        )


def _none() -> list[Repair]:
    return [repair("Name no distribution", distribution=None)]


@rule("distribution-elsewhere", "Only SageMaker has distributions by name.", "SM-SDK",
      on=("local", "vertex", "ai-platform"), severity=Severity.WARNING)  # fmt: skip
def distribution_elsewhere(job: Job) -> Iterator[Problem]:
    if job.layout.distribution:
        yield Problem(
            "distribution",
            f"A distribution has no meaning on {job.layout.on}: set the launcher.",
            _none,
        )


@rule(
    "distribution-framework",
    "The distribution serves the framework, from the version that first had it.",
    "AWS-BLOG-TF;SM-SDK",
    on=_HERE,
)
def distribution_framework(job: Job) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    name, number = job.layout.framework_name, version(job.layout.framework_version)
    if row is None or not name:
        return
    least = dict(map(split_framework, _oldest(job, row))).get(name)
    if name not in row.frameworks:
        yield Problem(
            "framework",
            f"{row.distribution} is for {', '.join(row.frameworks)}, not for {name}.",
            partial(_other_distribution, job),
        )
    elif least and number and number < version(least):
        yield Problem(
            "framework",
            f"{row.distribution} needs {name} {least} or later, "
            f"not {job.layout.framework_version}.",
            lambda: [
                repair(f"Use {name} {least}", framework=f"{name}-{least}"),
                *_other_distribution(job),
            ],
        )


def _oldest(job: Job, row: Distribution) -> tuple[str, ...]:
    if row.distribution == _MODEL and job.layout.launcher == "torchrun":
        return limit(job.catalog, "sagemaker", "modelparallel_v2_pytorch_min")
    return row.framework_min


def _other_distribution(job: Job) -> Iterator[Repair]:
    if job.layout.distribution:
        yield from _none()
    yield repair("Let the launcher be chosen", distribution=None, launcher="auto")


@rule(
    "distribution-version",
    "The framework's version is one that the distribution supports, unless an image is given.",
    "SM-SDK;SM-DOC-PT;SM-DOC-DDP;SM-DOC-2023",
    on=_HERE,
)
def distribution_version(job: Job) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    layout = job.layout
    if row is None or layout.image or not layout.framework_version:
        return
    allowed = _versions(job, row)
    if allowed and layout.framework_version not in allowed:
        yield Problem(
            "framework",
            f"{row.distribution} does not support {layout.framework}; "
            f"{layout.framework_name} {', '.join(allowed[-_FEW:])} are among those that it does.",
            partial(_versions_near, job, allowed),
        )


def _versions(job: Job, row: Distribution) -> list[str]:
    listed: tuple[str, ...] = row.versions
    if row.distribution == _TORCH and _trainium(job):
        listed = limit(job.catalog, "sagemaker", "trainium_pytorch_versions")
    if row.distribution == _MODEL and job.layout.launcher == "torchrun":
        return []
    name = job.layout.framework_name
    return [number for text in listed for kind, number in [split_framework(text)] if kind == name]


def _versions_near(job: Job, allowed: list[str]) -> Iterator[Repair]:
    wanted, name = version(job.layout.framework_version), job.layout.framework_name
    above = [number for number in allowed if version(number) > wanted]
    below = [number for number in allowed if version(number) <= wanted]
    for number in [*above[:1], *below[-1:]]:
        yield repair(f"Use {name} {number}", framework=f"{name}-{number}")


def _trainium(job: Job) -> bool:
    return any((placed.pool.machine or "").startswith("ml.trn") for placed in job.pools)


@rule(
    "distribution-instance",
    "The instance type is one that the distribution runs on.",
    "SM-SDK;SM-DOC-DDP;SM-DOC-2023;SM-DOC-SMP1",
    on=_HERE,
)
def distribution_instance(job: Job) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row is None or (row.distribution == _MODEL and job.layout.launcher == "torchrun"):
        return
    for placed in _hosts(job):
        machine = placed.pool.machine
        if placed.instance and row.instance_types and not _runs_on(row, machine or ""):
            yield Problem(
                placed.where("machine"),
                f"{row.distribution} does not run on {machine}; "
                f"it runs on {', '.join(row.instance_types)}.",
                partial(_able_instances, job, placed, row),
            )


def _runs_on(row: Distribution, machine: str) -> bool:
    return any(fnmatchcase(machine, glob) for glob in row.instance_types)


def _able_instances(job: Job, placed: Placed, row: Distribution) -> Iterator[Repair]:
    able = [name for name in job.catalog.instances if _runs_on(row, name)]
    able.sort(key=lambda name: abs((job.catalog.instances[name].vcpu or 0) - (placed.vcpu or 0)))
    for name in able[:3]:
        hosts = {f"{host.role.value}__machine": name for host in _hosts(job)}
        yield repair(f"Use {name}", **hosts)
    yield from _other_distribution(job)


@rule(
    "distribution-launcher",
    "A distribution is not combined with one that it excludes, and SMP has mpi or torchrun.",
    "SM-SDK",
    on=_HERE,
)
def distribution_launcher(job: Job) -> Iterator[Problem]:
    layout = job.layout
    row = job.catalog.distributions.get(layout.distribution or "")
    if row is None:
        return
    started = next(
        (r for r in job.catalog.distributions.values() if r.launcher == layout.launcher), None
    )
    if row.distribution == _MODEL and layout.launcher not in ("mpi", "torchrun"):
        yield Problem(
            "launcher",
            f"{row.distribution} is started by mpi (version 1) or torchrun (version 2).",
            lambda: [
                repair("Start it with mpi", launcher="mpi"),
                repair("Start it with torchrun", launcher="torchrun"),
            ],
        )
    elif started and _exclude(row, started):
        yield Problem(
            "launcher",
            f"{row.distribution} can't be combined with {started.distribution}, "
            f"which the launcher {layout.launcher} stands for.",
            lambda: [repair("Let the launcher be chosen", launcher="auto"), *_none()],
        )


def _exclude(one: Distribution, other: Distribution) -> bool:
    return one.distribution in other.excludes or other.distribution in one.excludes


@rule(
    "trainium-distribution",
    "On Trainium the only distribution is torchrun.",
    "SM-SDK;SM-DOC-PT",
    on=_HERE,
)
def trainium_distribution(job: Job) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row and row.distribution != _TORCH and _trainium(job):
        yield Problem(
            "distribution" if job.layout.distribution else "launcher",
            f"Trainium instances take {_TORCH} only, not {row.distribution}.",
            lambda: [repair("Start it with torchrun", distribution=None, launcher="torchrun")],
        )


@rule(
    "mpi-options-without-mpi",
    "Options for mpirun come with a distribution that runs it.",
    "SM-SDK;AWS-BLOG-TF",
)
def mpi_options_without_mpi(job: Job) -> Iterator[Problem]:
    layout = job.layout
    row = distribution_of(layout, job.catalog) if layout.on == "sagemaker" else None
    takes = "custom_mpi_options" in row.options if row else layout.launcher == "mpi"
    if layout.mpi_options and not takes:
        yield Problem(
            "mpi_options",
            "These options are for mpirun, which does not start this job.",
            lambda: [
                repair("Start it with mpi", launcher="mpi", distribution=None),
                repair("Remove the options", mpi_options=None),
            ],
        )


@rule(
    "parameter-server-gpus",
    "With parameter servers a host has one worker, however many GPUs it has.",
    "AWS-BLOG-TF;SM-SDK",
    on=_HERE,
    severity=Severity.WARNING,
)
def parameter_server_gpus(job: Job) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row is None or row.distribution != "parameter_server":
        return
    for placed in _hosts(job):
        if placed.accelerators > 1:
            yield Problem(
                placed.where("machine"),
                f"A parameter-server host has one worker, and {placed.pool.machine} has "
                f"{placed.accelerators} GPUs; mpi starts one rank for each.",
                lambda: [
                    repair("Start it with mpi", launcher="mpi", distribution=None),
                    repair(
                        "Use ml.p3.2xlarge",
                        **{f"{host.role.value}__machine": "ml.p3.2xlarge" for host in _hosts(job)},
                    ),
                ],
            )
