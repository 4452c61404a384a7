"""GPUs on machines: type, count and machine belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial

from distrain_nb.layout.catalog.index import Counts, counts, short_name, takers
from distrain_nb.layout.catalog.lookup import dates
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, names_accelerators, repair
from distrain_nb.layout.rules.repairs import without_accelerator
from distrain_nb.places.vertex.rules import rule, warning

_TABLES = "VERTEX-CC;AIP-GPU"
_NEAREST = 3


def numbers(values: Counts) -> str:
    """`1, 2 or 4`."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


def _gpu_pools(job: ResolvedLayout) -> Iterator[ResolvedPool]:
    """Return the pools whose accelerators the count tables decide."""
    return (resolved for resolved in job.pools if not resolved.is_tpu and not resolved.legacy)


@rule("The accelerator is one of the API's.", "VERTEX-API;AIP-GPU", on=names_accelerators)
def accelerator_unknown(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        name = resolved.pool.accelerator
        if name and name not in job.catalog.accelerators and not _newer(job, name):
            yield Problem(
                resolved.where("accelerator"),
                f"{name} is not a known accelerator; choose one of {_names(job)}.",
                partial(_other_names, job, resolved, name),
            )


@warning("The accelerator is in the tables, not only in the service's installed SDK.", "VERTEX-API")
def accelerator_newer(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        name = resolved.pool.accelerator
        package = _newer(job, name) if name else ""
        if package:
            tables = f"the tables (of {dates(job.catalog, 'accelerators')})"
            message = (
                f"{name} is not in {tables}, but {package} has it, so it is taken. Its machines, "
                "numbers and regions are not checked."
            )
            yield Problem(resolved.where("accelerator"), message)


def _newer(job: ResolvedLayout, accelerator: str) -> str:
    """Return the SDK that lists an accelerator which no table has; empty if none does."""
    if accelerator in job.catalog.accelerators or job.offers is None:
        return ""
    names, package = job.offers.sdk_accelerators()
    return package if accelerator in names else ""


def _names(job: ResolvedLayout) -> str:
    return ", ".join(map(short_name, takers(job.catalog, job.layout.on)))


def _other_names(job: ResolvedLayout, resolved: ResolvedPool, name: str) -> Iterator[Repair]:
    here = takers(job.catalog, job.layout.on)
    names = {form: full for form, full in job.catalog.accelerator_names.items() if full in here}
    near = get_close_matches(name.upper(), names, n=2 * _NEAREST, cutoff=0.4)
    for full in dict.fromkeys(names[form] for form in near):
        yield repair(f"Use {short_name(full)}", **at(resolved.role, accelerator=full))
    yield from without_accelerator(resolved)


@rule("The place has not retired the accelerator.", "VERTEX-CC;AIP-GPU", on=names_accelerators)
def accelerator_retired(job: ResolvedLayout) -> Iterator[Problem]:
    here = takers(job.catalog, job.layout.on)
    for resolved in _gpu_pools(job):
        row = job.catalog.accelerators.get(resolved.pool.accelerator or "")
        if row and row.kind == "gpu" and row.accelerator not in here:
            offers = "no longer offers" if row.status == "deprecated" else "does not offer"
            yield Problem(
                resolved.where("accelerator"),
                f"{job.layout.title} {offers} {short_name(row.accelerator)}.",
                partial(_other_accelerators, job, resolved),
            )


@warning("The accelerator's support has no announced end.", "GCE-GPU", on=names_accelerators)
def accelerator_ending(job: ResolvedLayout) -> Iterator[Problem]:
    here = takers(job.catalog, job.layout.on)
    for resolved in job.pools:
        row = job.catalog.accelerators.get(resolved.accelerator or "")
        if row and row.status != "active" and row.accelerator in here:
            yield Problem(
                resolved.where("accelerator"),
                f"{short_name(row.accelerator)}: {row.status}.",
                partial(_other_accelerators, job, resolved),
            )


def _other_accelerators(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    """Others that the machine takes in the same number."""
    here = counts(job.catalog, job.layout.on).get(resolved.pool.machine or "", {})
    for name, allowed in here.items():
        count = resolved.pool.accelerator_count
        if name != resolved.pool.accelerator and count in allowed:
            yield repair(
                f"Use {count} x {short_name(name)} instead", **at(resolved.role, accelerator=name)
            )


@rule("An accelerator type comes with a count of 1 or more.", _TABLES, on=names_accelerators)
def accelerator_without_count(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _gpu_pools(job):
        if resolved.pool.accelerator and resolved.pool.accelerator_count < 1:
            yield Problem(
                resolved.where("accelerator_count"),
                f"{short_name(resolved.pool.accelerator)} has a count of "
                f"{resolved.pool.accelerator_count}; {_allowed(job, resolved)}.",
                partial(_counts, job, resolved),
            )


@rule("An accelerator count comes with a type.", _TABLES, on=names_accelerators)
def count_without_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _gpu_pools(job):
        if not resolved.pool.accelerator and resolved.pool.accelerator_count != 0:
            yield Problem(
                resolved.where("accelerator"),
                f"The {resolved.role} pool has {resolved.pool.accelerator_count} accelerators, but "
                "no accelerator type.",
                partial(_types, job, resolved),
            )


def _types(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    here = counts(job.catalog, job.layout.on).get(resolved.pool.machine or "", {})
    for name, allowed in here.items():
        if resolved.pool.accelerator_count in allowed:
            count = resolved.pool.accelerator_count
            yield repair(f"Use {count} x {short_name(name)}", **at(resolved.role, accelerator=name))
    yield repair("Ask for no accelerators", **at(resolved.role, accelerator_count=0))


@rule("The machine type takes the accelerator type.", _TABLES, on=names_accelerators)
def accelerator_not_on_machine(job: ResolvedLayout) -> Iterator[Problem]:
    tables, here = counts(job.catalog, job.layout.on), takers(job.catalog, job.layout.on)
    for resolved in _gpu_pools(job):
        name, machine = resolved.pool.accelerator, resolved.pool.machine
        if resolved.machine and name and name in here and name not in tables.get(machine or "", {}):
            yield Problem(
                resolved.where("accelerator"),
                f"{machine} does not support {short_name(name)}; {_takes(job, resolved)}.",
                partial(_fitting, job, resolved),
            )


def _takes(job: ResolvedLayout, resolved: ResolvedPool) -> str:
    here = counts(job.catalog, job.layout.on).get(resolved.pool.machine or "", {})
    return f"it takes {', '.join(map(short_name, here))}" if here else "it takes no accelerators"


def _fitting(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    yield from _other_machines(job, resolved)
    yield from _other_accelerators(job, resolved)
    yield from without_accelerator(resolved)


def _other_machines(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    """Yield the machines nearest in vCPUs that take the accelerator in the same number."""
    here = takers(job.catalog, job.layout.on).get(resolved.pool.accelerator or "", {})
    fitting = [name for name in here if resolved.pool.accelerator_count in here[name]]
    for name in sorted(fitting, key=partial(_distance, job, resolved))[:_NEAREST]:
        yield repair(f"Use {name} for the {resolved.role}", **at(resolved.role, machine=name))


def _distance(job: ResolvedLayout, resolved: ResolvedPool, machine: str) -> tuple[float, str]:
    row = job.catalog.machines.get(machine)
    vcpu = (row.vcpu if row else None) or 0
    other_kind = machine.rpartition("-")[0] != (resolved.pool.machine or "").rpartition("-")[0]
    return abs(vcpu - (resolved.vcpu or 0)) + other_kind / 2, machine


@rule(
    "The count is one that the machine type takes of the accelerator type.",
    _TABLES,
    on=names_accelerators,
)
def accelerator_count(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _gpu_pools(job):
        allowed = _counts_of(job, resolved)
        count = resolved.pool.accelerator_count
        if allowed and count >= 1 and count not in allowed:
            yield Problem(
                resolved.where("accelerator_count"),
                f"{count} x {short_name(resolved.pool.accelerator or '')} does not fit; "
                f"{_allowed(job, resolved)}.",
                partial(_counts, job, resolved),
            )


def _counts_of(job: ResolvedLayout, resolved: ResolvedPool) -> Counts:
    here: Mapping[str, Counts] = counts(job.catalog, job.layout.on).get(
        resolved.pool.machine or "", {}
    )
    return here.get(resolved.pool.accelerator or "", ())


def _allowed(job: ResolvedLayout, resolved: ResolvedPool) -> str:
    allowed = _counts_of(job, resolved)
    return f"{resolved.pool.machine} takes {numbers(allowed)}" if allowed else "it needs 1 or more"


def _counts(job: ResolvedLayout, resolved: ResolvedPool) -> Iterator[Repair]:
    for count in _counts_of(job, resolved) or (1,):
        name = short_name(resolved.pool.accelerator or "")
        yield repair(f"Use {count} x {name}", **at(resolved.role, accelerator_count=count))
    if resolved.pool.accelerator_count > 0:
        yield from _other_machines(job, resolved)
    yield from without_accelerator(resolved)


@rule(
    "A machine type with a built-in accelerator is written with it.",
    "VERTEX-CC;GCE-GPU",
    on=names_accelerators,
)
def accelerator_required(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _gpu_pools(job):
        row = resolved.machine
        if row and row.accelerator_required and not resolved.pool.accelerator:
            name, count = row.builtin_accelerator, row.builtin_accelerator_count
            yield Problem(
                resolved.where("accelerator"),
                f"{row.machine_type} comes with {count} x {short_name(name)}, "
                "and the layout has to name them.",
                partial(_builtin, resolved, name, count or 1),
            )


def _builtin(resolved: ResolvedPool, name: str, count: int) -> Iterator[Repair]:
    yield repair(
        f"Ask for {count} x {short_name(name)}",
        **at(resolved.role, accelerator=name, accelerator_count=count),
    )
