"""GPUs on machines: type, count and machine belong together."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.catalog.active import short_name
from distrain_nb.layout.catalog.index import Counts, counts, takers
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair, rule
from distrain_nb.layout.rules.machines import GOOGLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.layout.placed import Job, Placed

_TABLES = "VERTEX-CC;AIP-GPU"
_NEAREST = 3


def numbers(values: Counts) -> str:
    """`1, 2 or 4`."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


def _gpu_pools(job: Job) -> Iterator[Placed]:
    """The pools whose accelerators the count tables decide."""
    return (placed for placed in job.pools if not placed.is_tpu and not placed.legacy)


@rule(
    "accelerator-unknown", "The accelerator is one of the API's.", "VERTEX-API;AIP-GPU", on=GOOGLE
)
def accelerator_unknown(job: Job) -> Iterator[Problem]:
    for placed in job.pools:
        name = placed.pool.accelerator
        if name and name not in job.catalog.accelerators:
            yield Problem(
                placed.where("accelerator"),
                f"{name} is not an accelerator; choose one of {_known(job)}.",
                partial(_other_names, job, placed, name),
            )


def _known(job: Job) -> str:
    return ", ".join(map(short_name, takers(job.catalog, job.layout.on)))


def _other_names(job: Job, placed: Placed, name: str) -> Iterator[Repair]:
    here = takers(job.catalog, job.layout.on)
    names = {form: full for form, full in job.catalog.accelerator_names.items() if full in here}
    near = get_close_matches(name.upper(), names, n=2 * _NEAREST, cutoff=0.4)
    for full in dict.fromkeys(names[form] for form in near):
        yield repair(f"Use {short_name(full)}", **at(placed.role, accelerator=full))
    yield _without(placed)


def _without(placed: Placed) -> Repair:
    return repair(
        f"Remove the accelerator from the {placed.role}",
        **at(placed.role, accelerator=None, accelerator_count=0),
    )


@rule(
    "accelerator-retired",
    "The place still has the accelerator.",
    "VERTEX-CC;AIP-GPU",
    on=GOOGLE,
)
def accelerator_retired(job: Job) -> Iterator[Problem]:
    here = takers(job.catalog, job.layout.on)
    for placed in _gpu_pools(job):
        row = job.catalog.accelerators.get(placed.pool.accelerator or "")
        if row and row.kind == "gpu" and row.accelerator not in here:
            offers = "no longer offers" if row.status == "deprecated" else "does not offer"
            yield Problem(
                placed.where("accelerator"),
                f"{job.layout.on} {offers} {short_name(row.accelerator)}.",
                partial(_other_accelerators, job, placed),
            )


@rule(
    "accelerator-ending",
    "The accelerator's support goes on.",
    "GCE-GPU",
    on=GOOGLE,
    severity=Severity.WARNING,
)
def accelerator_ending(job: Job) -> Iterator[Problem]:
    here = takers(job.catalog, job.layout.on)
    for placed in job.pools:
        row = job.catalog.accelerators.get(placed.accelerator or "")
        if row and row.status != "active" and row.accelerator in here:
            yield Problem(
                placed.where("accelerator"),
                f"{short_name(row.accelerator)}: {row.status}.",
                partial(_other_accelerators, job, placed),
            )


def _other_accelerators(job: Job, placed: Placed) -> Iterator[Repair]:
    """Others that the machine takes in the same number."""
    here = counts(job.catalog, job.layout.on).get(placed.pool.machine or "", {})
    for name, allowed in here.items():
        count = placed.pool.accelerator_count
        if name != placed.pool.accelerator and count in allowed:
            yield repair(
                f"Use {count} x {short_name(name)} instead", **at(placed.role, accelerator=name)
            )


@rule(
    "accelerator-without-count",
    "An accelerator type comes with a count of 1 or more.",
    _TABLES,
    on=GOOGLE,
)
def accelerator_without_count(job: Job) -> Iterator[Problem]:
    for placed in _gpu_pools(job):
        if placed.pool.accelerator and placed.pool.accelerator_count < 1:
            yield Problem(
                placed.where("accelerator_count"),
                f"{short_name(placed.pool.accelerator)} has a count of "
                f"{placed.pool.accelerator_count}; {_allowed(job, placed)}.",
                partial(_counts, job, placed),
            )


@rule(
    "count-without-accelerator",
    "An accelerator count comes with a type.",
    _TABLES,
    on=GOOGLE,
)
def count_without_accelerator(job: Job) -> Iterator[Problem]:
    for placed in _gpu_pools(job):
        if not placed.pool.accelerator and placed.pool.accelerator_count != 0:
            yield Problem(
                placed.where("accelerator"),
                f"{placed.pool.accelerator_count} accelerators are asked for, but no type.",
                partial(_types, job, placed),
            )


def _types(job: Job, placed: Placed) -> Iterator[Repair]:
    here = counts(job.catalog, job.layout.on).get(placed.pool.machine or "", {})
    for name, allowed in here.items():
        if placed.pool.accelerator_count in allowed:
            count = placed.pool.accelerator_count
            yield repair(f"Use {count} x {short_name(name)}", **at(placed.role, accelerator=name))
    yield repair("Ask for no accelerators", **at(placed.role, accelerator_count=0))


@rule(
    "accelerator-not-on-machine",
    "The machine type takes the accelerator type.",
    _TABLES,
    on=GOOGLE,
)
def accelerator_not_on_machine(job: Job) -> Iterator[Problem]:
    tables, here = counts(job.catalog, job.layout.on), takers(job.catalog, job.layout.on)
    for placed in _gpu_pools(job):
        name, machine = placed.pool.accelerator, placed.pool.machine
        if placed.machine and name and name in here and name not in tables.get(machine or "", {}):
            yield Problem(
                placed.where("accelerator"),
                f"{machine} takes no {short_name(name)}; {_takes(job, placed)}.",
                partial(_fitting, job, placed),
            )


def _takes(job: Job, placed: Placed) -> str:
    here = counts(job.catalog, job.layout.on).get(placed.pool.machine or "", {})
    return f"it takes {', '.join(map(short_name, here))}" if here else "it takes no accelerators"


def _fitting(job: Job, placed: Placed) -> Iterator[Repair]:
    yield from _other_machines(job, placed)
    yield from _other_accelerators(job, placed)
    yield _without(placed)


def _other_machines(job: Job, placed: Placed) -> Iterator[Repair]:
    """The machines nearest in vCPUs that take the accelerator in the same number."""
    here = takers(job.catalog, job.layout.on).get(placed.pool.accelerator or "", {})
    fitting = [name for name in here if placed.pool.accelerator_count in here[name]]
    for name in sorted(fitting, key=partial(_distance, job, placed))[:_NEAREST]:
        yield repair(f"Use {name} for the {placed.role}", **at(placed.role, machine=name))


def _distance(job: Job, placed: Placed, machine: str) -> tuple[float, str]:
    row = job.catalog.machines.get(machine)
    vcpu = (row.vcpu if row else None) or 0
    other_kind = machine.rpartition("-")[0] != (placed.pool.machine or "").rpartition("-")[0]
    return abs(vcpu - (placed.vcpu or 0)) + other_kind / 2, machine


@rule(
    "accelerator-count",
    "The count is one that the machine type takes of the accelerator type.",
    _TABLES,
    on=GOOGLE,
)
def accelerator_count(job: Job) -> Iterator[Problem]:
    for placed in _gpu_pools(job):
        allowed = _counts_of(job, placed)
        count = placed.pool.accelerator_count
        if allowed and count >= 1 and count not in allowed:
            yield Problem(
                placed.where("accelerator_count"),
                f"{count} x {short_name(placed.pool.accelerator or '')} does not fit; "
                f"{_allowed(job, placed)}.",
                partial(_counts, job, placed),
            )


def _counts_of(job: Job, placed: Placed) -> Counts:
    here: Mapping[str, Counts] = counts(job.catalog, job.layout.on).get(
        placed.pool.machine or "", {}
    )
    return here.get(placed.pool.accelerator or "", ())


def _allowed(job: Job, placed: Placed) -> str:
    allowed = _counts_of(job, placed)
    return f"{placed.pool.machine} takes {numbers(allowed)}" if allowed else "it needs 1 or more"


def _counts(job: Job, placed: Placed) -> Iterator[Repair]:
    for count in _counts_of(job, placed) or (1,):
        name = short_name(placed.pool.accelerator or "")
        yield repair(f"Use {count} x {name}", **at(placed.role, accelerator_count=count))
    if placed.pool.accelerator_count > 0:
        yield from _other_machines(job, placed)
    yield _without(placed)


@rule(
    "accelerator-required",
    "A machine type that has its accelerator built in names it.",
    "VERTEX-CC;GCE-GPU",
    on=GOOGLE,
)
def accelerator_required(job: Job) -> Iterator[Problem]:
    for placed in _gpu_pools(job):
        row = placed.machine
        if row and row.accelerator_required and not placed.pool.accelerator:
            name, count = row.builtin_accelerator, row.builtin_accelerator_count
            yield Problem(
                placed.where("accelerator"),
                f"{row.machine_type} comes with {count} x {short_name(name)}, "
                f"which has to be asked for.",
                partial(_builtin, placed, name, count or 1),
            )


def _builtin(placed: Placed, name: str, count: int) -> Iterator[Repair]:
    yield repair(
        f"Ask for {count} x {short_name(name)}",
        **at(placed.role, accelerator=name, accelerator_count=count),
    )
