"""SageMaker: instance types to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from distrain_nb.layout.catalog.index import figure
from distrain_nb.layout.hardware import AMD64, TITLES, device_of, platform_of
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Alternative, Pool
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool, resolve
from distrain_nb.layout.rules.engine import Problem, Repair, repair
from distrain_nb.layout.rules.repairs import standard_scheduling
from distrain_nb.layout.rules.variants import pools_with_alternatives
from distrain_nb.places.sagemaker.rules import rule, warning


def _where(layout: Layout) -> str:
    return f"{next(iter(pools_with_alternatives(layout)))}.alternatives"


def _none(layout: Layout) -> Repair:
    """Return the repair that keeps the first choice alone."""
    changes = {f"{name}__alternatives": () for name in pools_with_alternatives(layout)}
    return repair("Leave the alternatives out", **changes)


@rule(
    "Alternatives are for machines on demand and of a training plan, not for spot machines.",
    "SM-API",
    of_each=False,
)
def alternatives_spot(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.spot and pools_with_alternatives(job.layout):
        yield Problem(
            "scheduling",
            "Managed spot training takes one instance type, and no alternatives to it.",
            lambda: [*standard_scheduling(), _none(job.layout)],
        )


@rule("A job lists at most 5 instance types to choose from.", "SM-API", of_each=False)
def alternatives_many(job: ResolvedLayout) -> Iterator[Problem]:
    most = figure(job.catalog, "sagemaker", "instance_preferences_max")
    for name, pool in pools_with_alternatives(job.layout).items():
        count = len(pool.machines)
        if count > most:
            changes = {f"{name}__alternatives": pool.alternatives[: most - 1]}
            yield Problem(
                f"{name}.alternatives",
                f"{count} instance types to choose from are too many; SageMaker takes {most}.",
                partial(_keeping, f"Keep the first {most}", changes),
            )


@rule("Each instance type is listed once.", "SM-API", of_each=False)
def alternatives_twice(job: ResolvedLayout) -> Iterator[Problem]:
    for name, pool in pools_with_alternatives(job.layout).items():
        once = tuple(_once(pool))
        if once != pool.alternatives:
            twice = next(name for name in pool.machines if pool.machines.count(name) > 1)
            yield Problem(
                f"{name}.alternatives",
                f"{twice} is there twice among the instance types to choose from.",
                partial(_keeping, "Write it once", {f"{name}__alternatives": once}),
            )


def _once(pool: Pool) -> Iterator[Alternative]:
    machines = {pool.machine}
    for alternative in pool.alternatives:
        if alternative.machine not in machines:
            machines.add(alternative.machine)
            yield alternative


def _keeping(label: str, changes: Mapping[str, tuple[Alternative, ...]]) -> Iterator[Repair]:
    yield repair(label, **changes)


@rule(
    "The primary and the workers list the same instance types.",
    "SM-API",
    of_each=False,
)
def alternatives_differ(job: ResolvedLayout) -> Iterator[Problem]:
    primary, workers = job.layout.primary, job.layout.workers
    if (
        not primary
        or not workers
        or not pools_with_alternatives(job.layout)
        or primary.machines == workers.machines
    ):
        return
    yield Problem(
        _where(job.layout),
        "With instance types to choose from there is one group of instances: the primary and the "
        "workers name the same ones.",
        lambda: [
            repair("Give the primary those of the workers", **_types("primary", workers)),
            repair("Give the workers those of the primary", **_types("workers", primary)),
            repair("Remove the primary", primary=None),
            _none(job.layout),
        ],
    )


def _types(name: str, model: Pool) -> dict[str, object]:
    """Return a pool's machines for another one, each as often as that has its own."""
    alternatives = tuple(replace(it, replicas=None) for it in model.alternatives)
    return {f"{name}__machine": model.machine, f"{name}__alternatives": alternatives}


@warning(
    "All listed instance types have the same kind of devices, because one image serves them.",
    "SM-API",
    of_each=False,
)
def alternatives_devices(job: ResolvedLayout) -> Iterator[Problem]:
    pools = pools_with_alternatives(job.layout)
    if not pools or job.layout.image or any(pool.image for pool in pools.values()):
        return
    kinds: dict[str, str] = {}
    for variant in job.layout.variants():
        for resolved in resolve(variant, catalog=job.catalog).training:
            if resolved.is_in_tables:
                kinds.setdefault(_kind(resolved), str(resolved.pool.machine))
    if len(kinds) > 1:
        (first, one), (second, other), *_ = kinds.items()
        yield Problem(
            _where(job.layout),
            f"{one} has {first}, {other} has {second}, and the job has one image for both: name "
            "one that serves both, with --image or --base.",
            lambda: [_alike(job.layout, first), _none(job.layout)],
        )


def _kind(resolved: ResolvedPool) -> str:
    kind = f"{TITLES[device_of(resolved)]}s"
    platform = platform_of([resolved])
    return kind if platform == AMD64 else f"{kind} beside Arm CPUs"


def _alike(layout: Layout, kind: str) -> Repair:
    """Return the repair that keeps those with the devices of the first choice."""
    others = [resolve(variant).training for variant in layout.variants()[1:]]
    keeps = [all(_kind(resolved) == kind for resolved in pools) for pools in others]
    changes = {
        f"{name}__alternatives": tuple(it for it, keep in zip(pool.alternatives, keeps) if keep)  # noqa: B905
        for name, pool in pools_with_alternatives(layout).items()
    }
    return repair(f"Keep those with {kind}", **changes)
