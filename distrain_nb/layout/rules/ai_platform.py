"""AI Platform Training: scale tiers, and one category of machines in all roles."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.pool import Role
from distrain_nb.layout.rules.engine import Edit, Problem, Repair, at, repair, rule
from distrain_nb.layout.rules.legacy import successors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.catalog.rows import LegacyMachine
    from distrain_nb.layout.placed import Job, Placed

_HERE = ("ai-platform",)
_CUSTOM = "CUSTOM"
_TPU, _TPUS = "cloud_tpu", ("TPU_V2", "TPU_V3")


@rule("tier-unknown", "The scale tier exists.", "ML-API;AIP-GPU", on=_HERE)
def tier_unknown(job: Job) -> Iterator[Problem]:
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


@rule("tier-with-pools", "Only the tier CUSTOM has pools.", "ML-API;AIP-GPU", on=_HERE)
def tier_with_pools(job: Job) -> Iterator[Problem]:
    tier = job.layout.tier
    if tier and tier != _CUSTOM and job.pools:
        yield Problem(
            "tier",
            f"The tier {tier} fixes the machines; pools are for the tier CUSTOM.",
            partial(_tier_or_pools, job, tier),
        )


def _tier_or_pools(job: Job, tier: str) -> Iterator[Repair]:
    yield repair("Use the tier CUSTOM", tier=None)
    yield repair(f"Remove the pools, keep {tier}", **{p.role.value: None for p in job.pools})


@rule("custom-without-primary", "The tier CUSTOM names the primary's machine.", "ML-API", on=_HERE)
def custom_without_primary(job: Job) -> Iterator[Problem]:
    if job.layout.tier == _CUSTOM and not job.layout.primary:
        yield Problem(
            "primary",
            "The tier CUSTOM needs a primary.",
            lambda: [repair("Remove the tier", tier=None), *_custom()[1:]],
        )


@rule("tier-elsewhere", "Only AI Platform has scale tiers.", "ML-API", severity=Severity.WARNING)
def tier_elsewhere(job: Job) -> Iterator[Problem]:
    if job.layout.tier and job.layout.on != "ai-platform":
        yield Problem(
            "tier",
            f"The tier {job.layout.tier} has no meaning on {job.layout.on}.",
            partial(_without_tier, job),
        )


def _without_tier(job: Job) -> Iterator[Repair]:
    """With a primary that has the tier's GPU, where there is no pool that could have it."""
    rows = job.catalog.legacy_machines.values()
    tier = next((row for row in rows if row.name == job.layout.tier), None)
    if tier and tier.accelerator and not job.pools and job.layout.on == "vertex":
        has = (tier.accelerator, tier.accelerator_count)
        alike = next(row for row in rows if (row.accelerator, row.accelerator_count) == has)
        for found in successors(job, Role.PRIMARY, alike):
            yield Repair(found.label, Edit((("tier", None), *found.edit.changes)))
    else:
        yield repair("Remove the tier", tier=None)


@rule(
    "machine-categories",
    "All roles use Compute Engine machine types, or all use legacy ones.",
    "ML-API",
    on=_HERE,
)
def machine_categories(job: Job) -> Iterator[Problem]:
    legacy = [placed for placed in job.pools if placed.legacy]
    modern = [placed for placed in job.pools if placed.machine]
    if legacy and modern:
        for placed in legacy:
            yield Problem(
                placed.where("machine"),
                f"{placed.pool.machine} is a legacy machine type, but the {modern[0].role} is on "
                f"{modern[0].pool.machine}: a job uses one kind or the other.",
                partial(_modern, job, placed),
            )


def _modern(job: Job, placed: Placed) -> Iterator[Repair]:
    if placed.legacy:
        yield from successors(job, placed.role, placed.legacy)


@rule(
    "legacy-accelerator",
    "A legacy machine type has its accelerators built in and is given no others.",
    "AIP-GPU",
    on=_HERE,
)
def legacy_accelerator(job: Job) -> Iterator[Problem]:
    for placed in job.pools:
        row = placed.legacy
        asked = placed.pool.accelerator or placed.pool.accelerator_count
        if row and row.kind == "machine" and asked and not _takes(row, placed.pool.accelerator):
            has = f"{row.accelerator_count} x {row.accelerator}" if row.accelerator else "none"
            yield Problem(
                placed.where("accelerator"),
                f"{row.name} has its accelerators built in ({has}); it takes no others.",
                partial(_own, placed),
            )


def _takes(row: LegacyMachine, accelerator: str | None) -> bool:
    return row.name == _TPU and accelerator in _TPUS


def _own(placed: Placed) -> Iterator[Repair]:
    yield repair("Remove the accelerator", **at(placed.role, accelerator=None, accelerator_count=0))
