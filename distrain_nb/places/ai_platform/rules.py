"""AI Platform Training: scale tiers, and one category of machines in all roles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.rows import LegacyMachine
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, named_rule, repair
from distrain_nb.layout.rules.repairs import without_accelerator
from distrain_nb.layout.rules.replacements import successors

rule = partial(named_rule, on=("ai-platform",))
_CUSTOM = "CUSTOM"
_FIRST = {"vertex": Role.PRIMARY, "sagemaker": Role.WORKERS}
_TPU, _TPUS = "cloud_tpu", ("TPU_V2", "TPU_V3")


@rule("The scale tier exists.", "ML-API;AIP-GPU")
def tier_unknown(job: ResolvedLayout) -> Iterator[Problem]:
    tiers = [row.name for row in job.catalog.legacy_machines.values() if row.kind == "scale_tier"]
    if job.layout.tier and job.layout.tier not in tiers:
        yield Problem(
            "tier",
            f"{job.layout.tier} is not a scale tier; choose one of {', '.join(tiers)}.",
            _custom,
        )


def _custom() -> list[Repair]:
    return [
        repair("Use the tier CUSTOM", tier=None),
        repair("Use the tier BASIC_GPU", tier="BASIC_GPU"),
    ]


@rule("Only the tier CUSTOM has pools.", "ML-API;AIP-GPU")
def tier_with_pools(job: ResolvedLayout) -> Iterator[Problem]:
    tier = job.layout.tier
    if tier and tier != _CUSTOM and job.pools:
        yield Problem(
            "tier",
            f"The tier {tier} fixes the machines; pools are for the tier CUSTOM.",
            partial(_tier_or_pools, job, tier),
        )


def _tier_or_pools(job: ResolvedLayout, tier: str) -> Iterator[Repair]:
    yield repair("Use the tier CUSTOM", tier=None)
    yield repair(f"Remove the pools, keep {tier}", **{p.role.value: None for p in job.pools})


@rule("The tier CUSTOM names the primary's machine.", "ML-API")
def custom_without_primary(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.tier == _CUSTOM and not job.layout.primary:
        yield Problem(
            "primary",
            "The tier CUSTOM needs a primary.",
            lambda: [repair("Remove the tier", tier=None), *_custom()[1:]],
        )


@rule("All roles use Compute Engine machine types, or all use legacy ones.", "ML-API")
def machine_categories(job: ResolvedLayout) -> Iterator[Problem]:
    legacy = [resolved for resolved in job.pools if resolved.legacy]
    modern = [resolved for resolved in job.pools if resolved.machine]
    if legacy and modern:
        for resolved in legacy:
            yield Problem(
                resolved.where("machine"),
                f"{resolved.pool.machine} is a legacy machine type, but the {modern[0].role} is on "
                f"{modern[0].pool.machine}: a job uses one kind or the other.",
                partial(_modern, job, resolved),
            )


def _modern(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    if resolved.legacy:
        yield from successors(job, resolved)


@rule("A legacy machine type has built-in accelerators and takes no others.", "AIP-GPU")
def legacy_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        row = resolved.legacy
        asked = resolved.pool.accelerator or resolved.pool.accelerator_count
        if row and row.kind == "machine" and asked and not _takes(row, resolved.pool.accelerator):
            has = f"{row.accelerator_count} x {row.accelerator}" if row.accelerator else "none"
            yield Problem(
                resolved.where("accelerator"),
                f"{row.name} has its accelerators built in ({has}); it takes no others.",
                partial(without_accelerator, resolved),
            )


def _takes(row: LegacyMachine, accelerator: str | None) -> bool:
    return row.name == _TPU and accelerator in _TPUS
