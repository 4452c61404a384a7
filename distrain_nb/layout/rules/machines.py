"""Machine types and replicas: there, known, and offered where the job runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from itertools import takewhile

from distrain_nb.layout.catalog.index import counts, short_name, takers
from distrain_nb.layout.catalog.lookup import dates
from distrain_nb.layout.hardware import CPU, TITLES, device_in_name
from distrain_nb.layout.machine_words import accelerators_of, machines_with
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import (
    Problem,
    Repair,
    at,
    has_tables,
    named_rule,
    named_warning,
    repair,
)
from distrain_nb.layout.rules.replacements import accelerator_text, equipment, successors

_ALIKE, _MEANT = 20, 4


@named_rule("Every pool names a machine type.", "VERTEX-CC;ML-API;SM-API", on=has_tables)
def machine_missing(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        if not resolved.pool.machine:
            yield Problem(
                resolved.where("machine"),
                f"The {resolved.role} pool has no machine type.",
                partial(_machines_for, job, resolved),
            )


def _machines_for(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    if job.offers is None:
        return
    if resolved.pool.accelerator and not job.offers.names_accelerators:
        yield from successors(job, resolved)
        return
    taken = [other.pool.machine for other in job.pools if other.pool.machine]
    if resolved.pool.accelerator:
        counts = takers(job.catalog, job.layout.on).get(resolved.pool.accelerator, {})
        fitting = [name for name in counts if resolved.pool.accelerator_count in counts[name]]
        taken += fitting[:3]
    if resolved.role is Role.REDUCERS:
        taken.insert(0, "n1-highcpu-16")
    for name in dict.fromkeys([*taken, job.offers.default_machine]):
        yield repair(f"Use {name} for the {resolved.role}", **at(resolved.role, machine=name))


@named_rule(
    "The machine type is one that the place offers for training.",
    "VERTEX-CC;AIP-GPU;SM-API",
    on=has_tables,
)
def machine_unknown(job: ResolvedLayout) -> Iterator[Problem]:
    offered = job.offers.machines(job.catalog) if job.offers else {}
    for resolved in job.pools:
        name = resolved.pool.machine
        if name and name not in offered and not _newer(job, resolved):
            yield Problem(
                resolved.where("machine"),
                _unknown(job, resolved, offered),
                partial(_near, job, resolved, offered),
            )


@named_warning(
    "The machine type is in the tables, not only in the service's installed SDK.",
    "SM-API",
    on=has_tables,
)
def machine_newer(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        package = _newer(job, resolved)
        if package:
            tables = f"the tables (of {dates(job.catalog, 'instances')})"
            message = (
                f"{resolved.pool.machine} is not in {tables}, but {package} has it, so it is "
                f"taken. Its size is not checked; {_devices(job, resolved)}."
            )
            yield Problem(resolved.where("machine"), message)


def _newer(job: ResolvedLayout, resolved: ResolvedPool) -> str:
    """Return the SDK that lists a machine which no table has; empty if none does."""
    if resolved.is_in_tables or job.offers is None or not resolved.pool.machine:
        return ""
    names, package = job.offers.sdk_machines()
    return package if resolved.pool.machine in names else ""


def _devices(job: ResolvedLayout, resolved: ResolvedPool) -> str:
    kind = device_in_name(resolved.pool.machine or "")
    if not kind:
        return "its name tells no devices: name an image for them with --image or --base"
    if kind == CPU:
        return "by its name it has no accelerators"
    ranks = "" if job.layout.ranks_per_replica else ", and gets one rank unless -n says how many"
    return f"by its name it has {TITLES[kind]}s{ranks}"


def _unknown(job: ResolvedLayout, resolved: ResolvedPool, offered: Mapping[str, None]) -> str:
    name, place = resolved.pool.machine, job.layout.title
    if resolved.legacy and resolved.legacy.kind == "scale_tier":
        return f"{name} is a scale tier, not a machine type: set it as the tier."
    if resolved.legacy:
        has = accelerators_of(job.catalog, resolved.legacy.name)
        with_them = f" with {accelerator_text(has)}" if has else ""
        return f"{name} is a machine type of AI Platform{with_them}."
    if resolved.is_in_tables:
        return f"{name} is not offered for training on {place}."
    if machines_with(job.catalog, job.layout.on, offered, name or ""):
        return f"{name} is not a machine type: choose one that has it."
    return f"{name} is not a machine type known for {place}; if it is new, add it to catalog.yaml."


def _near(
    job: ResolvedLayout, resolved: ResolvedPool, offered: Mapping[str, None]
) -> Iterator[Repair]:
    if resolved.legacy or (resolved.is_in_tables and equipment(resolved)):
        yield from successors(job, resolved)
        return
    name = resolved.pool.machine or ""
    meant = machines_with(job.catalog, job.layout.on, offered, name)[:_MEANT]
    if meant:
        yield from (_equipped(job, resolved, machine, name) for machine in meant)
        return
    near_by = sorted(offered, key=lambda other: -_alike(name, other))[:_ALIKE]
    near = get_close_matches(name, near_by, n=3, cutoff=0.5)
    if not near:
        yield from successors(job, resolved)
    for machine in near:
        yield repair(f"Use {machine} for the {resolved.role}", **at(resolved.role, machine=machine))


def _equipped(
    job: ResolvedLayout, resolved: ResolvedPool, machine: str, accelerator: str
) -> Repair:
    """Return the machine with the accelerators that a request for it has to name: its own, or those
    that are wanted."""
    row, words = job.catalog.machines.get(machine), accelerator.lower()
    builtin = job.catalog.accelerators.get(row.builtin_accelerator) if row else None
    is_named = job.offers is not None and job.offers.names_accelerators
    taken = counts(job.catalog, job.layout.on).get(machine, {}) if is_named else {}
    name = builtin.accelerator if builtin and builtin.kind == "gpu" else ""
    name = name or next((item for item in taken if short_name(item).lower() in words), "")
    if not name or name not in taken:
        return repair(
            f"Use {machine} for the {resolved.role}", **at(resolved.role, machine=machine)
        )
    asked = re.match(r"\d*", words)
    number = next((item for item in taken[name] if asked and asked[0] == str(item)), taken[name][0])
    equipment = {"machine": machine, "accelerator": name, "accelerator_count": number}
    label = f"Use {machine} with {number} x {short_name(name)} for the {resolved.role}"
    return repair(label, **at(resolved.role, **equipment))


def _alike(one: str, other: str) -> int:
    """Return how many letters two names begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@named_rule("The region has the form of the cloud's region names.", "VERTEX-LOC", on=has_tables)
def region_form(job: ResolvedLayout) -> Iterator[Problem]:
    region = job.layout.region
    if region is None or job.offers is None:
        return
    form, example = job.offers.regions
    if not form.fullmatch(region):
        yield Problem(
            "region",
            f"{region!r} is not a region of {job.layout.title}; regions look like {example}.",
            lambda: [repair("Choose no region yet", region=None)],
        )
