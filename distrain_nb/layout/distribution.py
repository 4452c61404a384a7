"""The distributions that advice chooses from, and the layout that runs each, which the rules have
checked like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.findings import errors
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.options import line
from distrain_nb.layout.place import place_of, places
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules import check

if TYPE_CHECKING:
    from distrain_nb.findings import Finding, Fix
    from distrain_nb.layout.case import Case

PARAMETER_SERVERS, HOROVOD = "parameter servers", "Horovod"
ONE_INSTANCE = "Horovod on one instance"
DDP, DDP_ONE_INSTANCE = "torchrun with DDP", "torchrun with DDP on one instance"
DDP_BY_MPI = "mpi with DDP"

LAUNCHERS = {
    HOROVOD: "mpi",
    ONE_INSTANCE: "mpi",
    DDP: "torchrun",
    DDP_ONE_INSTANCE: "torchrun",
    DDP_BY_MPI: "mpi",
    PARAMETER_SERVERS: "parameter-server",
}
ON_ONE = (ONE_INSTANCE, DDP_ONE_INSTANCE)

# What is tried where the rules refuse a choice.
NEXT = {HOROVOD: (PARAMETER_SERVERS,), PARAMETER_SERVERS: (HOROVOD,), DDP: (DDP_BY_MPI,)}

_MOST_REPAIRS = 20


class Advised(NamedTuple):
    """The options to write, empty where no known machine can do it; notes; and the reason why not,
    where the rules refuse it."""

    options: str = ""
    notes: tuple[str, ...] = ()
    refused: str = ""


def advised(case: Case, choice: str) -> Advised:
    """Return the options that a choice takes in a case, with the smallest repairs of what the rules
    find that was not wrong with the layout before. They touch neither launcher nor machines."""
    layout = _layout(case, choice)
    if layout is None:
        gpus = _ranks(case, choice)
        return Advised(notes=(f"no machine is known to have {gpus} of these GPUs",))
    layout, notes = _without_idle(layout, choice)
    existing = {_mark(finding) for finding in _errors(case, case.layout or Layout(layout.on))}
    for _ in range(_MOST_REPAIRS):
        error = _errors(case, layout)
        fresh = next((finding for finding in error if _mark(finding) not in existing), None)
        fix = _fix(layout, fresh) if fresh else None
        if fresh is None or fix is None:
            break
        notes += (f"{_unended(fresh.message)}, so {fix.label[0].lower()}{fix.label[1:]}",)
        layout = fix.apply(layout)
    if fresh:
        return Advised(refused=f"not {choice}: {_unended(fresh.message)}")
    if case.layout is None:
        return Advised(line(layout).removeprefix("--on local "), notes)
    return Advised(line(layout), (*notes, *(finding.described for finding in error)))


def _errors(case: Case, layout: Layout) -> tuple[Finding, ...]:
    return errors(check(layout, framework=case.framework))


def _mark(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.where


def _fix(layout: Layout, finding: Finding) -> Fix[Layout] | None:
    """Return the smallest repair that keeps what was chosen, and the machines that it was chosen
    for."""

    def chosen(layout: Layout) -> tuple[object, ...]:
        return layout.launcher, layout.primary, layout.workers, layout.servers

    return next((fix for fix in finding.fixes if chosen(fix.apply(layout)) == chosen(layout)), None)


def _unended(message: str) -> str:
    return message.removesuffix(".")


def _layout(case: Case, choice: str) -> Layout | None:
    """Return the layout that a choice is for; None where no machine is known to do it."""
    layout = case.layout
    if choice == PARAMETER_SERVERS:
        return _with_servers(case)
    if layout is not None and choice in ON_ONE and (case.instances or 1) > 1:
        layout = _on_one(layout, _ranks(case, choice))
        if layout is None:
            return None
    ranks = _ranks(case, choice)
    return replace(layout or Layout(), launcher=LAUNCHERS[choice], ranks_per_replica=ranks)


def _with_servers(case: Case) -> Layout:
    """Add parameter servers: on each host where every host has one, elsewhere as a pool."""
    serving = (name for name, one in places().items() if one.offers and one.offers.hosts_serve)
    layout = replace(case.layout or Layout(next(serving)), ranks_per_replica=None)
    place = place_of(layout.on)
    offers = place.offers if place else None
    if offers and offers.hosts_serve:
        return replace(layout, launcher=LAUNCHERS[PARAMETER_SERVERS])
    machine = offers.server_machine if offers else None
    return replace(layout, servers=Pool(case.instances or 1, machine), launcher="tensorflow")


def _without_idle(layout: Layout, choice: str) -> tuple[Layout, tuple[str, ...]]:
    """Remove pools that a choice has no use for; on this machine mpirun starts ranks alone."""
    idle = set() if choice == PARAMETER_SERVERS else {Role.SERVERS}
    if layout.on == "local" and layout.launcher == "mpi":
        idle |= {Role.REDUCERS, Role.EVALUATORS}
    gone = [role for role, _ in layout.pools() if role in idle]
    notes = tuple(f"leave the {role} out: {choice} doesn't use them" for role in gone)
    return layout.edited({role.value: None for role in gone}), notes


def _ranks(case: Case, choice: str) -> int:
    """Return the ranks of a machine: one for each GPU, on one instance for the GPUs of all."""
    gpus = case.gpus_per_instance or 1
    if choice not in ON_ONE:
        return gpus
    total = gpus * (case.instances or 1)
    largest = max(row.gpu_count or 0 for row in current().instances.values())
    return total if total <= largest else gpus


def _on_one(layout: Layout, gpus: int) -> Layout | None:
    """Return the layout with one machine that has so many of its GPUs; None if there is none."""
    place = place_of(layout.on)
    if place is None or place.offers is None:
        return None
    role = place.offers.whole_job_role
    larger = place.offers.larger(getattr(layout, role) or Pool(), gpus)
    return layout.edited({"workers": None, role: larger}) if larger else None
