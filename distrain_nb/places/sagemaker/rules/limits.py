"""SageMaker: versions, volumes, channels and times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.index import figure, limit
from distrain_nb.layout.durations import duration
from distrain_nb.layout.releases import is_of, releases
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool, resolve
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair
from distrain_nb.places.sagemaker.rules import rule, warning


@warning(
    "SageMaker has a prebuilt image of the framework's version, unless an image is given.", "SM-SDK"
)
def framework_version(job: ResolvedLayout) -> Iterator[Problem]:
    layout = job.layout
    name, number = layout.framework_name, layout.framework_version
    if layout.image or not name or not number:
        return
    versions = releases(limit(job.catalog, "sagemaker", "framework_versions"), name)
    if versions and not any(is_of(version, number) for version in versions):
        yield Problem(
            "framework",
            f"No prebuilt image of {name} {number} is known; the newest is {versions[-1]}.",
            partial(_newest, name, versions[-1]),
        )


def _newest(name: str, number: str) -> Iterator[Repair]:
    yield repair(f"Use {name} {number}", framework=f"{name}-{number}")


@rule("A volume has at least 1 GB.", "SM-API")
def volume_size(job: ResolvedLayout) -> Iterator[Problem]:
    least = figure(job.catalog, "sagemaker", "volume_gb_min")
    for resolved in job.pools:
        size = resolved.pool.disk_gb
        if size is not None and size < least:
            yield Problem(
                resolved.where("disk_gb"),
                f"A volume of {size} GB is too small; it needs {least} GB or more.",
                partial(_size, resolved, figure(job.catalog, "sagemaker", "volume_gb_default")),
            )


def _size(resolved: ResolvedPool, size: int) -> Iterator[Repair]:
    yield repair(f"Use {size} GB", **at(resolved.role, disk_gb=size))
    yield repair("Use the default size", **at(resolved.role, disk_gb=None))


@warning("Instances with their own storage have no volume to size.", "SM-API")
def volume_fixed(job: ResolvedLayout) -> Iterator[Problem]:
    families = limit(job.catalog, "sagemaker", "volume_fixed_families")
    for resolved in job.pools:
        family = (resolved.pool.machine or "").rpartition(".")[0]
        if resolved.pool.disk_gb is not None and family in families:
            yield Problem(
                resolved.where("disk_gb"),
                f"{resolved.pool.machine} uses its own storage, whose size is fixed.",
                partial(_default_size, resolved),
            )


def _default_size(resolved: ResolvedPool) -> Iterator[Repair]:
    yield repair("Ask for no volume size", **at(resolved.role, disk_gb=None))


@warning("A volume has no type to choose.", "SM-API")
def volume_type(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        if resolved.pool.disk_type:
            yield Problem(
                resolved.where("disk_type"),
                f"SageMaker chooses the volume's type, so {resolved.pool.disk_type} is ignored.",
                partial(_no_type, resolved),
            )


def _no_type(resolved: ResolvedPool) -> Iterator[Repair]:
    yield repair("Remove the type", **at(resolved.role, disk_type=None))


@rule(
    "At most 20 input channels, with names of 1 to 64 letters, digits, dots, dashes, underscores.",
    "SM-API",
)
def channels(job: ResolvedLayout) -> Iterator[Problem]:
    most = figure(job.catalog, "sagemaker", "channels_max")
    longest = figure(job.catalog, "sagemaker", "channel_name_length_max")
    form = re.compile(limit(job.catalog, "sagemaker", "channel_name_pattern")[0])
    if len(job.channels) > most:
        yield Problem("data", f"{len(job.channels)} channels are too many; SageMaker takes {most}.")
    for name in job.channels:
        if len(name) > longest or not form.fullmatch(name):
            yield Problem(
                f"data.{name}",
                f"{name!r} is not a valid channel name; use up to {longest} letters, digits, dots, "
                f"dashes and underscores.",
            )


@rule("A job runs for at most 28 days.", "SM-API")
def run_time(job: ResolvedLayout) -> Iterator[Problem]:
    longest = figure(job.catalog, "sagemaker", "run_seconds_max")
    if job.layout.timeout is not None and job.layout.timeout > longest:
        yield Problem(
            "timeout",
            f"A job runs for at most {duration(longest)}, not {duration(job.layout.timeout)}.",
            lambda: [repair(f"Stop after {duration(longest)}", timeout=longest)],
        )


@rule(
    "The time to wait on spot machines counts the run, so it is no shorter than the run's limit.",
    "SM-API",
)
def wait_shorter_than_run(job: ResolvedLayout) -> Iterator[Problem]:
    layout = job.layout
    runs = layout.timeout or figure(job.catalog, "sagemaker", "run_seconds_default")
    if layout.spot and layout.max_wait is not None and layout.max_wait < runs:
        yield Problem(
            "max_wait",
            f"max_wait of {duration(layout.max_wait)} is shorter than the {duration(runs)} that "
            f"the job may run.",
            lambda: [
                repair(f"Wait for up to {duration(runs)}", max_wait=runs),
                repair(f"Stop after {duration(layout.max_wait or 0)}", timeout=layout.max_wait),
            ],
        )


@rule(
    "Without spot machines, max_wait is how long a job may be pending: 30 minutes to 28 days.",
    "SM-API",
)
def pending_time(job: ResolvedLayout) -> Iterator[Problem]:
    waits = job.layout.max_wait
    shortest, longest = map(int, limit(job.catalog, "sagemaker", "pending_seconds"))
    if waits is not None and not job.layout.spot and not shortest <= waits <= longest:
        nearest = min(max(waits, shortest), longest)
        yield Problem(
            "max_wait",
            f"A job may be pending for {duration(shortest)} to {duration(longest)}, not "
            f"{duration(waits)}.",
            lambda: [
                repair(f"Wait for up to {duration(nearest)}", max_wait=nearest),
                repair("Remove max_wait", max_wait=None),
            ],
        )


@warning("A limit on pending applies only to jobs with accelerators.", "SM-API", of_each=False)
def pending_without_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    waits, spot = job.layout.max_wait, job.layout.spot
    variants = (resolve(layout, catalog=job.catalog) for layout in job.layout.variants())
    pools = [pool for variant in variants for pool in variant.pools if pool.is_in_tables]
    if waits is not None and not spot and pools and not any(p.accelerator for p in pools):
        yield Problem(
            "max_wait",
            "max_wait has no effect here: only jobs on machines with accelerators are stopped when "
            "they have been pending for so long.",
            lambda: [
                repair("Remove max_wait", max_wait=None),
                repair("Use spot machines", scheduling="SPOT"),
            ],
        )


@rule("Checkpoints on SageMaker are in S3.", "SM-API")
def checkpoint_place(job: ResolvedLayout) -> Iterator[Problem]:
    place = job.layout.checkpoint
    if place and not re.match(r"(https|s3)://", place):
        yield Problem(
            "checkpoint",
            f"{place} is not in S3; write s3://BUCKET/PREFIX.",
            lambda: [repair("Save no checkpoints", checkpoint=None)],
        )
