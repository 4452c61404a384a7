"""Parameter servers, Horovod, or neither: which distribution suits a case, and why.

The choice is that of AWS's article on Horovod and parameter servers (key AWS-BLOG-TF of the table
of sources): scale up before out, then decide by how long the gradients take to be shared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from distrain_nb.layout.case import HIDDEN_SHARE, QUESTIONS
from distrain_nb.layout.catalog.active import current
from distrain_nb.layout.catalog.index import takers
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.gain import remarks
from distrain_nb.layout.options import line
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.releases import older, releases
from distrain_nb.layout.traffic import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.case import Case
    from distrain_nb.layout.layout import Layout

# From here on, all-to-all traffic with parameter servers is likely to fill the network.
MANY_GPUS = 32

PARAMETER_SERVERS, HOROVOD = "parameter servers", "Horovod"
ONE_INSTANCE = "Horovod on one instance"
DDP, DDP_ONE_INSTANCE = "torchrun with DDP", "torchrun with DDP on one instance"
NO_DISTRIBUTION, UNDECIDED = "no distribution", "not decided"

_SERVER = "n1-highmem-8"

_LAUNCHERS = {
    HOROVOD: "mpi",
    ONE_INSTANCE: "mpi",
    DDP: "torchrun",
    DDP_ONE_INSTANCE: "torchrun",
    PARAMETER_SERVERS: "parameter-server",
}
_ON_ONE = (ONE_INSTANCE, DDP_ONE_INSTANCE)
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
    """What to use and why, the options to write, the article's table, and what to ask.

    `choice` is `not decided` where too little is known; the table marks the cell of the case.
    """

    choice: str
    options: str
    reasons: tuple[str, ...]
    questions: tuple[str, ...]
    table: Grid

    def __str__(self) -> str:
        parts = [f"Use {self.choice}" if self.choice != UNDECIDED else "Not decided yet"]
        parts += [f"write: %%distrain {self.options}"] if self.options else []
        parts += [f"  - {reason}" for reason in self.reasons]
        parts += ["", str(self.table)]
        parts += ["", "Tell me more:"] if self.questions else []
        return "\n".join([*parts, *(f"  {question}" for question in self.questions)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "Not decided yet" if self.choice == UNDECIDED else f"Use {self.choice}"
        write = f"<p>Write <code>%%distrain {escape(self.options)}</code></p>"
        asked = f"<p>Tell me more:</p>{_list(self.questions)}" if self.questions else ""
        return (
            f"<p><b>{escape(head)}</b></p>{write if self.options else ''}"
            f"{_list(self.reasons)}{self.table._repr_html_()}{asked}"
        )


def advise(case: Case) -> Advice:
    """The distribution for a case."""
    choice, reasons = (_choose_for_pytorch if _has_pytorch(case) else _choose)(case)
    choice, limits = _within_versions(case, choice)
    questions = tuple(QUESTIONS[name] for name in case.missing)
    why = (*reasons, *limits, *_remarks(case, choice))
    return Advice(choice, _options(case, choice), why, questions, _table(case))


def _has_pytorch(case: Case) -> bool:
    return case.framework in ("pytorch", "huggingface")


def _choose_for_pytorch(case: Case) -> tuple[str, tuple[str, ...]]:
    """DDP, in the places of what the article has for TensorFlow."""
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
    """The choice by the article, as if the framework had everything."""
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


def _within_versions(case: Case, choice: str) -> tuple[str, tuple[str, ...]]:
    """The choice that the framework and its version leave."""
    refused = _too_old(case, choice)
    if not refused:
        return choice, ()
    other = HOROVOD if choice == PARAMETER_SERVERS else PARAMETER_SERVERS
    if _too_old(case, other) or choice == ONE_INSTANCE:
        return NO_DISTRIBUTION, (refused, "bring an image of your own, or a newer version")
    return other, (refused,)


def _too_old(case: Case, choice: str) -> str:
    """Why the framework's version can't have a choice; empty if it can."""
    least = _oldest(case, choice)
    if not older(case.framework_version, least):
        return ""
    return f"{choice} needs {case.framework} {least} or newer, not {case.framework_version}"


def _oldest(case: Case, choice: str) -> str:
    """The first version of the framework that has a choice; empty if none is named."""
    row = current().distributions.get(_DISTRIBUTIONS.get(choice, ""))
    return next(iter(releases(row.framework_min, case.framework)), "") if row else ""


def _remarks(case: Case, choice: str) -> Iterator[str]:
    gpus, instances = case.gpus_per_instance, case.instances
    if instances and instances > 1 and gpus and choice not in _ON_ONE:
        yield f"scale up before out: try one instance with {gpus * instances} or more GPUs first"
    if choice in _LAUNCHERS and case.layout is None and instances and instances > 1:
        yield "these options alone run on this machine: add --on, and --workers for the others"
    if not case.framework_version and _oldest(case, choice):
        yield f"it needs {case.framework} {_oldest(case, choice)} or newer"
    if choice == PARAMETER_SERVERS:
        yield "updates are asynchronous: if it converges badly, lower the learning rate"
        if gpus and gpus > 1:
            yield f"each instance has one worker: write a tower for each of its {gpus} GPUs"
    else:
        yield from remarks(case)


def _options(case: Case, choice: str) -> str:
    """What to write; empty where no machine is known to do it."""
    if choice not in _LAUNCHERS:
        return ""
    layout = case.layout
    if choice == PARAMETER_SERVERS:
        return _with_servers(case)
    if layout is not None and choice in _ON_ONE and (case.instances or 1) > 1:
        layout = _on_one(layout, _ranks(case, choice))
        if layout is None:
            return ""
    start = f"--launcher {_LAUNCHERS[choice]} -n {_ranks(case, choice)}"
    return f"{_machines(layout)}{start}"


def _machines(layout: Layout | None) -> str:
    """The options that a job needs to run there, and not here."""
    return f"{line(replace(layout, launcher='auto', ranks_per_replica=None))} " if layout else ""


def _with_servers(case: Case) -> str:
    """As each place takes them: SageMaker has a server on each host, elsewhere they are a pool."""
    if case.layout is None or case.layout.on == "sagemaker":
        place = _machines(case.layout) or "--on sagemaker "
        return f"{place}--launcher {_LAUNCHERS[PARAMETER_SERVERS]}"
    machine = _SERVER if case.layout.on == "vertex" else None
    layout = replace(case.layout, servers=Pool(case.instances or 1, machine))
    return f"{_machines(layout)}--launcher tensorflow"


def _ranks(case: Case, choice: str) -> int:
    """Ranks of a machine: one for each GPU, on one instance for the GPUs of all, if it has them."""
    gpus = case.gpus_per_instance or 1
    if choice not in _ON_ONE:
        return gpus
    total = gpus * (case.instances or 1)
    largest = max(row.gpu_count or 0 for row in current().instances.values())
    return total if total <= largest else gpus


def _on_one(layout: Layout, gpus: int) -> Layout | None:
    """The layout with one machine that has so many of its GPUs; None if there is none."""
    role = "workers" if layout.on == "sagemaker" else "primary"
    found = _larger(layout.on, getattr(layout, role) or Pool(), gpus)
    return layout.edited({"workers": None, role: found}) if found else None


def _larger(place: str, pool: Pool, gpus: int) -> Pool | None:
    """One machine with so many of a pool's GPUs, or as few more as there are."""
    if place == "sagemaker":
        rows = current().instances
        given = rows.get(pool.machine or "")
        own = given.gpu_name if given else ""
        fitting = [
            (row.gpu_count, name)
            for name, row in rows.items()
            if own == row.gpu_name and row.gpu_count and row.gpu_count >= gpus
        ]
        return replace(pool, replicas=1, machine=min(fitting)[1]) if fitting else None
    takes = takers(current(), place).get(pool.accelerator or "", {}) if place == "vertex" else {}
    names = sorted(name for name in takes if gpus in takes[name])
    machine = pool.machine if pool.machine in names else next(iter(names), None)
    more = replace(pool, replicas=1, machine=machine, accelerator_count=gpus)
    return more if machine else None


def _table(case: Case) -> Grid:
    """The article's table, for PyTorch with DDP in it; the cell of the case in brackets."""
    column = None if case.gpus_per_instance is None else 2 if case.gpus_per_instance else 1
    wanted = {True: _LONG, False: _SHORT, None: ""}[case.takes_long]
    rows = []
    for row in _ROWS_OF_PYTORCH if _has_pytorch(case) else _ROWS:
        here = column is not None and (row[0] == wanted or (column == 1 and not wanted))
        rows.append(tuple(f"[{c}]" if here and n == column else c for n, c in enumerate(row)))
    return Grid(("", "better on CPUs", "better on GPUs"), tuple(rows))


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
