"""SageMaker: instances, and how many processes run on each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.rows import Instance
from distrain_nb.layout.machine_words import accelerators_of
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, repair
from distrain_nb.layout.rules.repairs import standard_scheduling, without_accelerator
from distrain_nb.layout.rules.replacements import accelerator_text, tier_pool
from distrain_nb.places.sagemaker.rules import rule, warning


def slots(instance: Instance) -> int:
    """Return the most processes that a host runs: its GPUs, its Neuron cores, or else its vCPUs."""
    return instance.gpu_count or instance.neuron_cores or instance.vcpu or 1


@rule("A job has instances.", "SM-API")
def instances_missing(job: ResolvedLayout) -> Iterator[Problem]:
    if not job.training:
        yield Problem(
            "workers",
            "There are no instances: lay out the workers.",
            partial(_instances, job),
        )


def _instances(job: ResolvedLayout) -> list[Repair]:
    one = repair("Use one ml.m5.xlarge", workers=Pool(1, "ml.m5.xlarge"))
    return [*tier_pool(job, Role.WORKERS)] or [one]


@warning(
    "Where the primary's instance differs from the workers', ranks wait for the slower one.",
    "SM-API",
    of_each=False,
)
def instances_differ(job: ResolvedLayout) -> Iterator[Problem]:
    primary, workers = job.layout.primary, job.layout.workers
    if not primary or not workers or primary.alternatives or workers.alternatives:
        return  # alternatives-differ
    if primary.machine != workers.machine:
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


@rule("An instance type has built-in accelerators and takes no others.", "SM-API")
def instance_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.training:
        asked = resolved.pool.accelerator or resolved.pool.accelerator_count
        if asked and resolved.instance:
            yield Problem(
                resolved.where("accelerator"),
                f"On SageMaker the accelerators come with the instance type: {_has(resolved)}.",
                partial(without_accelerator, resolved),
            )


def _has(resolved: ResolvedPool) -> str:
    has = accelerators_of(resolved.catalog, resolved.pool.machine or "")
    return f"{resolved.pool.machine} has {accelerator_text(has) if has else 'none'}"


@rule(
    "A host runs at most as many ranks as it has GPUs, or vCPUs if it has no GPUs.",
    "AWS-BLOG-TF;SM-SDK;SM-DOC-TF",
)
def processes_per_host(job: ResolvedLayout) -> Iterator[Problem]:
    ranks = job.layout.ranks_per_replica
    most = min((slots(p.instance) for p in job.training if p.instance), default=None)
    if ranks is not None and most is not None and ranks > most:
        yield Problem(
            "ranks_per_replica",
            f"{ranks} processes per host do not fit: the instance has {most} slots.",
            lambda: [repair(f"Run {most} processes per host", ranks_per_replica=most)],
        )


@warning("SageMaker has spot machines and no other strategy.", "SM-API")
def scheduling_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    name = job.layout.scheduling
    if name and name not in ("SPOT", "STANDARD"):
        yield Problem(
            "scheduling", f"{name} has no meaning on {job.layout.title}.", standard_scheduling
        )
