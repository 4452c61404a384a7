"""SageMaker's distributions: what each needs of framework, instance and launcher."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

from distrain_nb.layout.catalog.index import limit
from distrain_nb.layout.catalog.rows import Distribution
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.releases import older, releases
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, repair
from distrain_nb.places.sagemaker.rules import rule, warning

_MODEL = "smdistributed.modelparallel"
_TORCH = "torch_distributed"
_FEW = 6


def distribution_of(layout: Layout, catalog: Catalog) -> Distribution | None:
    """Return the row of the distribution that a layout names, or that its launcher stands for."""
    if layout.distribution:
        return catalog.distributions.get(layout.distribution)
    rows = catalog.distributions.values()
    return next((row for row in rows if row.launcher and row.launcher == layout.launcher), None)


@rule("The distribution is one of SageMaker's.", "SM-SDK")
def distribution_unknown(job: ResolvedLayout) -> Iterator[Problem]:
    name = job.layout.distribution
    if name and name not in job.catalog.distributions:
        names = ", ".join(job.catalog.distributions)
        yield Problem(
            "distribution", f"{name} is not a distribution; choose one of {names}.", _none
        )


def _none() -> list[Repair]:
    return [repair("Name no distribution", distribution=None)]


@rule(
    "The distribution supports the framework, from its first version on.",
    "AWS-BLOG-TF;SM-SDK",
)
def distribution_framework(job: ResolvedLayout) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    name = job.layout.framework_name
    if row is None or not name:
        return
    least = next(iter(releases(_oldest(job, row), name)), None)
    if name not in row.frameworks:
        yield Problem(
            "framework",
            f"{row.distribution} is for {', '.join(row.frameworks)}, not for {name}.",
            partial(_other_distribution, job),
        )
    elif older(job.layout.framework_version, least):
        yield Problem(
            "framework",
            f"{row.distribution} needs {name} {least} or later, "
            f"not {job.layout.framework_version}.",
            lambda: [
                repair(f"Use {name} {least}", framework=f"{name}-{least}"),
                *_other_distribution(job),
            ],
        )


def _oldest(job: ResolvedLayout, row: Distribution) -> tuple[str, ...]:
    if row.distribution == _MODEL and job.layout.launcher == "torchrun":
        return limit(job.catalog, "sagemaker", "modelparallel_v2_pytorch_min")
    return row.framework_min


def _other_distribution(job: ResolvedLayout) -> Iterator[Repair]:
    if job.layout.distribution:
        yield from _none()
    yield repair("Let the launcher be chosen", distribution=None, launcher="auto")


@rule(
    "The framework's version is one that the distribution supports, unless an image is given.",
    "SM-SDK;SM-DOC-PT;SM-DOC-DDP;SM-DOC-2023",
)
def distribution_version(job: ResolvedLayout) -> Iterator[Problem]:
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


def _versions(job: ResolvedLayout, row: Distribution) -> tuple[str, ...]:
    listed: tuple[str, ...] = row.versions
    if row.distribution == _TORCH and _trainium(job):
        listed = limit(job.catalog, "sagemaker", "trainium_pytorch_versions")
    if row.distribution == _MODEL and job.layout.launcher == "torchrun":
        return ()
    return releases(listed, job.layout.framework_name)


def _versions_near(job: ResolvedLayout, allowed: tuple[str, ...]) -> Iterator[Repair]:
    version, name = job.layout.framework_version, job.layout.framework_name
    above = [number for number in allowed if older(version, number)]
    below = [number for number in allowed if number not in above]
    for number in [*above[:1], *below[-1:]]:
        yield repair(f"Use {name} {number}", framework=f"{name}-{number}")


def _trainium(job: ResolvedLayout) -> bool:
    return any((resolved.pool.machine or "").startswith("ml.trn") for resolved in job.pools)


@rule(
    "The instance type is one that the distribution runs on.",
    "SM-SDK;SM-DOC-DDP;SM-DOC-2023;SM-DOC-SMP1",
)
def distribution_instance(job: ResolvedLayout) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row is None or (row.distribution == _MODEL and job.layout.launcher == "torchrun"):
        return
    for resolved in job.training:
        machine = resolved.pool.machine
        if resolved.instance and row.instance_types and not _runs_on(row, machine or ""):
            yield Problem(
                resolved.where("machine"),
                f"{row.distribution} does not run on {machine}; "
                f"it runs on {', '.join(row.instance_types)}.",
                partial(_able_instances, job, resolved, row),
            )


def _runs_on(row: Distribution, machine: str) -> bool:
    return any(fnmatchcase(machine, glob) for glob in row.instance_types)


def _able_instances(
    job: ResolvedLayout, resolved: ResolvedPool, row: Distribution
) -> Iterator[Repair]:
    able = [name for name in job.catalog.instances if _runs_on(row, name)]
    able.sort(key=lambda name: abs((job.catalog.instances[name].vcpu or 0) - (resolved.vcpu or 0)))
    for name in able[:3]:
        hosts = {f"{host.role.value}__machine": name for host in job.training}
        yield repair(f"Use {name}", **hosts)
    yield from _other_distribution(job)


@rule(
    "A distribution is not combined with one that it excludes, and SMP has mpi or torchrun.",
    "SM-SDK",
)
def distribution_launcher(job: ResolvedLayout) -> Iterator[Problem]:
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
    elif started and (row.distribution in started.excludes or started.distribution in row.excludes):
        yield Problem(
            "launcher",
            f"{row.distribution} can't be combined with {started.distribution}, "
            f"which the launcher {layout.launcher} stands for.",
            lambda: [repair("Let the launcher be chosen", launcher="auto"), *_none()],
        )


@rule("On Trainium the only distribution is torchrun.", "SM-SDK;SM-DOC-PT")
def trainium_distribution(job: ResolvedLayout) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row and row.distribution != _TORCH and _trainium(job):
        yield Problem(
            "distribution" if job.layout.distribution else "launcher",
            f"Trainium instances take {_TORCH} only, not {row.distribution}.",
            lambda: [repair("Start it with torchrun", distribution=None, launcher="torchrun")],
        )


@warning(
    "With parameter servers a host has one worker, however many GPUs it has.", "AWS-BLOG-TF;SM-SDK"
)
def parameter_server_gpus(job: ResolvedLayout) -> Iterator[Problem]:
    row = distribution_of(job.layout, job.catalog)
    if row is None or row.distribution != "parameter_server":
        return
    for resolved in job.training:
        if resolved.accelerators > 1:
            yield Problem(
                resolved.where("machine"),
                f"A parameter-server host has one worker, and {resolved.pool.machine} has "
                f"{resolved.accelerators} GPUs; mpi starts one rank for each.",
                lambda: [
                    repair("Start it with mpi", launcher="mpi", distribution=None),
                    repair(
                        "Use ml.p3.2xlarge",
                        **{f"{host.role.value}__machine": "ml.p3.2xlarge" for host in job.training},
                    ),
                ],
            )
