"""The options of a layout that fit a chosen distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distrain_nb.findings import Finding, Fix, errors
from distrain_nb.layout.case import Case
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.distributions import LAUNCHERS, ON_ONE, PARAMETER_SERVERS
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import place_of, places
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules import check
from distrain_nb.layout.text import line

_MOST_REPAIRS = 20


class AdvisedOptions(NamedTuple):
    """The options to write, with notes; or the reason why the rules refuse them.

    `options` is empty if no known machine fits.
    """

    options: str = ""
    notes: tuple[str, ...] = ()
    refused: str = ""


def advised_options(case: Case, choice: str) -> AdvisedOptions:
    """Return the options of a choice for a case.

    The choice may cause findings that the layout didn't have before. Their smallest repairs are
    applied. No repair changes the launcher or the machines.
    """
    layout = _layout(case, choice)
    if layout is None:
        gpus = _ranks(case, choice)
        return AdvisedOptions(notes=(f"no machine is known to have {gpus} of these GPUs",))
    layout, notes = _without_idle(layout, choice)
    existing = {_identity(finding) for finding in _errors(case, case.layout or Layout(layout.on))}
    for _ in range(_MOST_REPAIRS):
        problems = _errors(case, layout)
        fresh = next((finding for finding in problems if _identity(finding) not in existing), None)
        fix = _fix(layout, fresh) if fresh else None
        if fresh is None or fix is None:
            break
        notes += (f"{_unended(fresh.message)}, so {fix.label[0].lower()}{fix.label[1:]}",)
        layout = fix.apply(layout)
    if fresh:
        return AdvisedOptions(refused=f"not {choice}: {_unended(fresh.message)}")
    if case.layout is None:
        return AdvisedOptions(line(layout).removeprefix("--on local "), notes)
    return AdvisedOptions(line(layout), (*notes, *(finding.described for finding in problems)))


def _errors(case: Case, layout: Layout) -> tuple[Finding, ...]:
    return errors(check(layout, framework=case.framework))


def _identity(finding: Finding) -> tuple[str, str]:
    """Return what tells a finding from others. Its message may change with the layout."""
    return finding.code, finding.where


def _fix(layout: Layout, finding: Finding) -> Fix[Layout] | None:
    """Return the smallest repair that keeps launcher and machines; None if each changes them."""

    def chosen(layout: Layout) -> tuple[object, ...]:
        return layout.launcher, layout.primary, layout.workers, layout.servers

    return next((fix for fix in finding.fixes if chosen(fix.apply(layout)) == chosen(layout)), None)


def _unended(message: str) -> str:
    return message.removesuffix(".")


def _layout(case: Case, choice: str) -> Layout | None:
    """Return the layout for a choice; None if no known machine fits."""
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
    """Add parameter servers: one on each host if the place has it so, else a pool."""
    serving = (name for name, one in places().items() if one.offers and one.offers.hosts_serve)
    layout = replace(case.layout or Layout(next(serving)), ranks_per_replica=None)
    place = place_of(layout.on)
    offers = place.offers if place else None
    if offers and offers.hosts_serve:
        return replace(layout, launcher=LAUNCHERS[PARAMETER_SERVERS])
    machine = offers.server_machine if offers else None
    return replace(layout, servers=Pool(case.instances or 1, machine), launcher="tensorflow")


def _without_idle(layout: Layout, choice: str) -> tuple[Layout, tuple[str, ...]]:
    """Remove the pools that a choice doesn't use. On this machine, mpirun starts only ranks."""
    idle = set() if choice == PARAMETER_SERVERS else {Role.SERVERS}
    if layout.on == "local" and layout.launcher == "mpi":
        idle |= {Role.REDUCERS, Role.EVALUATORS}
    gone = [role for role, _ in layout.pools() if role in idle]
    notes = tuple(f"leave the {role} out: {choice} doesn't use them" for role in gone)
    return layout.edited({role.value: None for role in gone}), notes


def _ranks(case: Case, choice: str) -> int:
    """Return the ranks of a machine: one for each of its GPUs.

    A choice of one instance gives it the GPUs of all, if there is such a machine.
    """
    gpus = case.gpus_per_instance or 1
    if choice not in ON_ONE:
        return gpus
    total = gpus * (case.instances or 1)
    largest = max(row.gpu_count or 0 for row in current().instances.values())
    return total if total <= largest else gpus


def _on_one(layout: Layout, gpus: int) -> Layout | None:
    """Return the layout with one machine of so many GPUs; None if there is no such machine."""
    place = place_of(layout.on)
    if place is None or place.offers is None:
        return None
    role = place.offers.whole_job_role
    larger = place.offers.larger(getattr(layout, role) or Pool(), gpus)
    return layout.edited({"workers": None, role: larger}) if larger else None
