"""Regions: where an accelerator is offered, and where all of a job's are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

from distrain_nb.layout.catalog.index import counts, limit, offers, short_name
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, names_accelerators, repair
from distrain_nb.layout.rules.repairs import machines_like
from distrain_nb.places.vertex.rules import rule, warning

_ANY = "ANY_GPU"
_SINGLE = 8
_SHOWN = 4


def _offered(resolved: ResolvedPool) -> str | None:
    """Return the name that the table of regions has for a pool's accelerator."""
    name = resolved.accelerator
    if name in ("TPU_V2", "TPU_V3") and resolved.pool.accelerator_count > _SINGLE:
        return f"{name}_POD"
    return name


def _regions(catalog: Catalog, place: str, accelerator: str) -> Mapping[str, str]:
    """Return whether training gets an accelerator, by region; AI Platform seldom says which."""
    table = offers(catalog, place)
    return table.get(accelerator) or (table.get(_ANY, {}) if place == "ai-platform" else {})


@lru_cache(maxsize=64)
def common_regions(catalog: Catalog, place: str, accelerators: frozenset[str]) -> tuple[str, ...]:
    """Return the regions where training gets every one of some accelerators, sorted."""
    sets = []
    for name in accelerators:
        here = _regions(catalog, place, name)
        if place == "ai-platform":
            here = {**offers(catalog, place).get(_ANY, {}), **here}
        sets.append({region for region, training in here.items() if training != "no"})
    return tuple(sorted(set.intersection(*sets))) if sets else ()


@lru_cache(maxsize=8)
def regions_known(catalog: Catalog, place: str) -> tuple[str, ...]:
    """Return the regions that the table has for a place, sorted."""
    return tuple(sorted({region for here in offers(catalog, place).values() for region in here}))


def job_accelerators(job: ResolvedLayout) -> frozenset[str]:
    """Return the accelerators of a job, as the table of regions names them."""
    names = (_offered(resolved) for resolved in job.pools)
    return frozenset(name for name in names if name and _regions(job.catalog, job.layout.on, name))


@rule(
    "The accelerator is offered for training in the region.",
    "VERTEX-LOC;AIP-GPU",
    on=names_accelerators,
)
def accelerator_not_in_region(job: ResolvedLayout) -> Iterator[Problem]:
    region, place = job.layout.region, job.layout.on
    if not region:
        return
    for resolved in job.pools:
        name = _offered(resolved)
        here = _here(job, name) if name else {}
        if name and here and here.get(region, "no") == "no":
            yield Problem(
                resolved.where("accelerator"),
                f"{short_name(name)} is not offered for training in {region}; "
                f"{_list(common_regions(job.catalog, place, frozenset([name])))}.",
                partial(_elsewhere, job, resolved),
            )


def _here(job: ResolvedLayout, name: str) -> Mapping[str, str]:
    place = job.layout.on
    here = _regions(job.catalog, place, name)
    return {**offers(job.catalog, place)[_ANY], **here} if place == "ai-platform" else here


def _list(regions: tuple[str, ...]) -> str:
    if not regions:
        return "no region offers it"
    more = f" and {len(regions) - _SHOWN} more" if len(regions) > _SHOWN else ""
    return f"it is in {', '.join(regions[:_SHOWN])}{more}"


def _elsewhere(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    region = job.layout.region or ""
    common = common_regions(job.catalog, job.layout.on, job_accelerators(job))
    near = sorted(
        common, key=lambda name: (name.partition("-")[0] != region.partition("-")[0], name)
    )
    for name in near[:3]:
        yield repair(f"Run in {name}", region=name)
    takes = counts(job.catalog, job.layout.on).get(resolved.pool.machine or "", {})
    for accelerator, allowed in takes.items():
        offered = _here(job, accelerator).get(region, "no") != "no"
        if offered and resolved.pool.accelerator_count in allowed:
            count = resolved.pool.accelerator_count
            label = f"Use {count} x {short_name(accelerator)} for the {resolved.role}"
            yield repair(label, **at(resolved.role, accelerator=accelerator))


@warning("The accelerator is open to everybody in the region.", "VERTEX-LOC")
def accelerator_on_allowlist(job: ResolvedLayout) -> Iterator[Problem]:
    region = job.layout.region or ""
    for resolved in job.pools:
        name = _offered(resolved)
        if name and _regions(job.catalog, "vertex", name).get(region) == "allowlist":
            yield Problem(
                resolved.where("accelerator"),
                f"In {region}, {short_name(name)} is given only to projects on an allowlist.",
                partial(_elsewhere, job, resolved),
            )


@rule(
    "Some region offers all of a job's accelerators.", "VERTEX-LOC;AIP-GPU", on=names_accelerators
)
def no_common_region(job: ResolvedLayout) -> Iterator[Problem]:
    names = job_accelerators(job)
    if len(names) > 1 and not common_regions(job.catalog, job.layout.on, names):
        yield Problem(
            "region",
            f"No region offers {' and '.join(map(short_name, sorted(names)))} together.",
            partial(_alike, job),
        )


@rule(
    "K80, P100 and T4 are never all three in one zone of us-central1.",
    "AIP-GPU",
    on=("ai-platform",),
)
def accelerators_in_one_zone(job: ResolvedLayout) -> Iterator[Problem]:
    region, *apart = limit(job.catalog, "ai-platform", "never_in_one_zone")
    if job.layout.region == region and set(apart) <= job_accelerators(job):
        yield Problem(
            "region",
            f"No zone of {region} has {', '.join(map(short_name, apart))} together.",
            partial(_alike, job),
        )


def _alike(job: ResolvedLayout) -> Iterator[Repair]:
    """Yield every pool with the accelerator that one of them has."""
    equipped = [resolved for resolved in job.pools if resolved.pool.accelerator]
    for model in equipped:
        name = short_name(model.pool.accelerator or "")
        yield repair(f"Use {name} in all pools", **machines_like(model, equipped))
