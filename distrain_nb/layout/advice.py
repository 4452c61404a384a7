"""Parameter servers, Horovod, or neither: which distribution suits a case, and why.

The choice is that of AWS's article on Horovod and parameter servers (key AWS-BLOG-TF of the table
of sources): scale up before out, then decide by how long the gradients take to be shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

from distrain_nb.findings import Finding, Fix, errors
from distrain_nb.layout.case import HIDDEN_SHARE, QUESTIONS, Case, older, releases
from distrain_nb.layout.catalog.index import current
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.gain import exchange, remarks
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.options import line
from distrain_nb.layout.place import place_of, places
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules import check
from distrain_nb.layout.traffic import Traffic, size

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


class AdvisedOptions(NamedTuple):
    """The options to write, empty where no known machine can do it; notes; and the reason why not,
    where the rules refuse it."""

    options: str = ""
    notes: tuple[str, ...] = ()
    refused: str = ""


def advised_options(case: Case, choice: str) -> AdvisedOptions:
    """Return the options that a choice takes in a case, with the smallest repairs of what the rules
    find that was not wrong with the layout before. They touch neither launcher nor machines."""
    layout = _layout(case, choice)
    if layout is None:
        gpus = _ranks(case, choice)
        return AdvisedOptions(notes=(f"no machine is known to have {gpus} of these GPUs",))
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
        return AdvisedOptions(refused=f"not {choice}: {_unended(fresh.message)}")
    if case.layout is None:
        return AdvisedOptions(line(layout).removeprefix("--on local "), notes)
    return AdvisedOptions(line(layout), (*notes, *(finding.described for finding in error)))


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


# From here on, all-to-all traffic with parameter servers is likely to fill the network.
MANY_GPUS = 32

NO_DISTRIBUTION, UNDECIDED = "no distribution", "not decided"

_DISTRIBUTIONS = {PARAMETER_SERVERS: "parameter_server", HOROVOD: "mpi", ONE_INSTANCE: "mpi"}
_AVOIDS = "one instance with more GPUs avoids the network"
_LONG, _SHORT = "gradients take long to share", "gradients are shared fast"
_ROWS = (
    (_LONG, PARAMETER_SERVERS, f"{PARAMETER_SERVERS}, or {HOROVOD} on one multi-GPU instance"),
    (_SHORT, PARAMETER_SERVERS, HOROVOD),
)
_ROWS_OF_PYTORCH = ((_LONG, DDP, DDP_ONE_INSTANCE), (_SHORT, DDP, DDP))


@dataclass(frozen=True)
class Advice:
    """Advice: what to use and why, the options to write, the article's table, and what to ask.

    `choice` is `not decided` where too little is known; the table marks the cell of the case.
    `exchange` is what a gradient costs, where that is known.
    """

    choice: str
    options: str
    reasons: tuple[str, ...]
    questions: tuple[str, ...]
    table: Grid
    exchange: Traffic | None = None

    def __str__(self) -> str:
        parts = [f"Use {self.choice}" if self.choice != UNDECIDED else "Not decided yet"]
        parts += [f"write: %%distrain {self.options}"] if self.options else []
        parts += [f"  - {reason}" for reason in self.reasons]
        parts += ["", str(self.table)]
        parts += ["", str(self.exchange)] if self.exchange else []
        parts += ["", "More information is needed:"] if self.questions else []
        return "\n".join([*parts, *(f"  {question}" for question in self.questions)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "Not decided yet" if self.choice == UNDECIDED else f"Use {self.choice}"
        write = f"<p>Write <code>%%distrain {escape(self.options)}</code></p>"
        questions = (
            f"<p>More information is needed:</p>{_list(self.questions)}" if self.questions else ""
        )
        costs = self.exchange._repr_html_() if self.exchange else ""
        return (
            f"<p><b>{escape(head)}</b></p>{write if self.options else ''}"
            f"{_list(self.reasons)}{self.table._repr_html_()}{costs}{questions}"
        )


def advise(case: Case) -> Advice:
    """Return the distribution for a case, and options that the rules of layouts have nothing
    against."""
    case, moved = _with_backend(case)
    choice, reasons = (_choose_for_pytorch if _has_pytorch(case) else _choose)(case)
    choice, advised_layout = _allowed(case, choice)
    questions = tuple(QUESTIONS[name] for name in case.missing)
    why = (*reasons, *moved, *advised_layout.notes, *_remarks(case, choice))
    return Advice(choice, advised_layout.options, why, questions, _table(case), exchange(case))


def _with_backend(case: Case) -> tuple[Case, tuple[str, ...]]:
    """Return the case at the successor of a place that has ended, which takes no jobs."""
    place = place_of(case.layout.on) if case.layout else None
    if case.layout is None or place is None or place.successor is None:
        return case, ()
    moved = replace(case, layout=place.successor.layout(case.layout))
    note = f"{place.title} Training has ended: the options are for {place.successor.name}"
    return moved, (note,)


def _has_pytorch(case: Case) -> bool:
    return case.framework in ("pytorch", "huggingface")


def _choose_for_pytorch(case: Case) -> tuple[str, tuple[str, ...]]:
    """Choose DDP where the article on TensorFlow has another distribution."""
    choice, reasons = _choose(case)
    if choice in (NO_DISTRIBUTION, UNDECIDED):
        return choice, reasons
    ranks = "DDP averages gradients as Horovod does, which works as well"
    if case.instances == 1:
        return DDP_ONE_INSTANCE, (*reasons, ranks)
    if not case.gpus_per_instance or not case.takes_long:
        return DDP, (*(reasons if choice == HOROVOD else ()), ranks)
    if choice == HOROVOD:
        return DDP, (_timing(case), "an instance with so many GPUs is rare", ranks)
    return DDP_ONE_INSTANCE, (_timing(case), _AVOIDS, ranks)


def _choose(case: Case) -> tuple[str, tuple[str, ...]]:
    """Return the choice by the article, as if the framework had everything."""
    gpus, instances = case.gpus_per_instance, case.instances
    if instances == 1 and gpus is not None:
        return _on_one_instance(gpus)
    if instances is None or gpus is None:
        return UNDECIDED, ("it depends on the number of machines and of their GPUs",)
    if gpus == 0:
        return PARAMETER_SERVERS, ("on CPUs they are the faster way, however large the model",)
    if case.takes_long is None:
        return UNDECIDED, ("on GPUs it depends on how long gradients take to share",)
    if not case.takes_long:
        return HOROVOD, (_timing(case),)
    return _for_long_exchange(case, gpus, gpus * instances)


def _on_one_instance(gpus: int) -> tuple[str, tuple[str, ...]]:
    if gpus > 1:
        return ONE_INSTANCE, ("GPUs of one machine exchange faster than any network does",)
    return NO_DISTRIBUTION, ("there is one machine with one device at most: nothing to share",)


def _for_long_exchange(case: Case, gpus: int, total: int) -> tuple[str, tuple[str, ...]]:
    if total >= MANY_GPUS:
        why = f"parameter servers talk all to all, which {total} GPUs make too much for a network"
        return HOROVOD, (_timing(case), why)
    if gpus > 1:
        why = f"{_AVOIDS}; {PARAMETER_SERVERS} are the other way"
        return ONE_INSTANCE, (_timing(case), why)
    why = f"{PARAMETER_SERVERS} don't make workers wait; {ONE_INSTANCE} with more GPUs also suits"
    return PARAMETER_SERVERS, (_timing(case), why)


def _timing(case: Case) -> str:
    exchange, step = case.exchange_s or 0.0, case.step_s
    formula = "2 (n - 1) / n x bytes / network"
    return (
        f"to share {size(case.model_bytes or 0)} takes at least {exchange * 1000:,.0f} ms "
        f"({formula}); a step of {step * 1000:,.0f} ms hides {HIDDEN_SHARE * step * 1000:,.0f} ms, "
        f"so {_LONG if case.takes_long else _SHORT}"
    )


def _allowed(case: Case, choice: str) -> tuple[str, AdvisedOptions]:
    """Return the choice that the framework's version and the rules of layouts leave, and its
    options."""
    if choice not in LAUNCHERS:
        return choice, AdvisedOptions()
    refused: list[str] = []
    for candidate in (choice, *NEXT.get(choice, ())):
        too_old = _too_old(case, candidate)
        advised_layout = (
            AdvisedOptions(refused=too_old) if too_old else advised_options(case, candidate)
        )
        if not advised_layout.refused:
            return candidate, advised_layout._replace(notes=(*refused, *advised_layout.notes))
        refused.append(advised_layout.refused)
    if _too_old(case, choice):
        refused.append("bring an image of your own, or a newer version")
    return NO_DISTRIBUTION, AdvisedOptions(notes=tuple(refused))


def _too_old(case: Case, choice: str) -> str:
    """Return why the framework's version can't have a choice; empty if it can."""
    least = _oldest(case, choice)
    if not older(case.framework_version, least):
        return ""
    return f"{choice} needs {case.framework} {least} or newer, not {case.framework_version}"


def _oldest(case: Case, choice: str) -> str:
    """Return the first version of the framework that has a choice; empty if none is named."""
    row = current().distributions.get(_DISTRIBUTIONS.get(choice, ""))
    return next(iter(releases(row.framework_min, case.framework)), "") if row else ""


def _remarks(case: Case, choice: str) -> Iterator[str]:
    gpus, instances = case.gpus_per_instance, case.instances
    if instances and instances > 1 and gpus and choice not in ON_ONE:
        yield f"scale up before out: try one instance with {gpus * instances} or more GPUs first"
    if choice in LAUNCHERS and case.layout is None and instances and instances > 1:
        yield "these options alone run on this machine: add --on, and --workers for the others"
    if not case.framework_version and _oldest(case, choice):
        yield f"it needs {case.framework} {_oldest(case, choice)} or newer"
    if choice == PARAMETER_SERVERS:
        yield "updates are asynchronous: if it converges badly, lower the learning rate"
        if gpus and gpus > 1:
            yield f"each instance has one worker: write a tower for each of its {gpus} GPUs"
    yield from remarks(
        case, "where gradients are added up instead, " if choice == PARAMETER_SERVERS else ""
    )


def _table(case: Case) -> Grid:
    """Return the article's table, for PyTorch with DDP in it; the cell of the case in brackets."""
    column = None if case.gpus_per_instance is None else 2 if case.gpus_per_instance else 1
    duration = {True: _LONG, False: _SHORT, None: ""}[case.takes_long]
    rows = []
    for row in _ROWS_OF_PYTORCH if _has_pytorch(case) else _ROWS:
        is_chosen = column is not None and (row[0] == duration or (column == 1 and not duration))
        rows.append(tuple(f"[{c}]" if is_chosen and n == column else c for n, c in enumerate(row)))
    return Grid(("", "better on CPUs", "better on GPUs"), tuple(rows))


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
