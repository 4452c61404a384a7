"""Advice on the distribution of a job: parameter servers, Horovod, DDP or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from distrain_nb.layout.advised_options import AdvisedOptions, advised_options
from distrain_nb.layout.case import QUESTIONS, Case
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.distribution_choice import choose
from distrain_nb.layout.distribution_table import marked_table
from distrain_nb.layout.distributions import (
    LAUNCHERS,
    NEXT,
    NO_DISTRIBUTION,
    ON_ONE,
    PARAMETER_SERVERS,
    UNDECIDED,
    oldest_version,
    too_old,
)
from distrain_nb.layout.gain import exchange, remarks
from distrain_nb.layout.place import place_of
from distrain_nb.layout.traffic import Traffic


@dataclass(frozen=True)
class Advice:
    """A distribution, the options to write, reasons, the article's table, and open questions.

    `choice` is `not decided` if too little is known. The table marks the cell of the case.
    `exchange` is the cost of a gradient, if it is known.
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
    """Return the distribution for a case, with options that the rules of layouts allow."""
    case, moved = _with_backend(case)
    choice, reasons = choose(case)
    choice, advised_layout = _allowed(case, choice)
    questions = tuple(QUESTIONS[name] for name in case.missing)
    why = (*reasons, *moved, *advised_layout.notes, *_remarks(case, choice))
    return Advice(
        choice, advised_layout.options, why, questions, marked_table(case), exchange(case)
    )


def _with_backend(case: Case) -> tuple[Case, tuple[str, ...]]:
    """Return the case at the successor of its place, if the place takes no jobs any more."""
    place = place_of(case.layout.on) if case.layout else None
    if case.layout is None or place is None or place.successor is None:
        return case, ()
    moved = replace(case, layout=place.successor.layout(case.layout))
    note = f"{place.title} Training has ended: the options are for {place.successor.name}"
    return moved, (note,)


def _allowed(case: Case, choice: str) -> tuple[str, AdvisedOptions]:
    """Return the choice that the framework's version and the rules allow, with its options."""
    if choice not in LAUNCHERS:
        return choice, AdvisedOptions()
    refused: list[str] = []
    for candidate in (choice, *NEXT.get(choice, ())):
        why_not = too_old(case, candidate)
        advised_layout = (
            AdvisedOptions(refused=why_not) if why_not else advised_options(case, candidate)
        )
        if not advised_layout.refused:
            return candidate, advised_layout._replace(notes=(*refused, *advised_layout.notes))
        refused.append(advised_layout.refused)
    if too_old(case, choice):
        refused.append("bring an image of your own, or a newer version")
    return NO_DISTRIBUTION, AdvisedOptions(notes=tuple(refused))


def _remarks(case: Case, choice: str) -> Iterator[str]:
    gpus, instances = case.gpus_per_instance, case.instances
    if instances and instances > 1 and gpus and choice not in ON_ONE:
        yield f"scale up before out: try one instance with {gpus * instances} or more GPUs first"
    if choice in LAUNCHERS and case.layout is None and instances and instances > 1:
        yield "these options alone run on this machine: add --on, and --workers for the others"
    if not case.framework_version and oldest_version(case, choice):
        yield f"it needs {case.framework} {oldest_version(case, choice)} or newer"
    if choice == PARAMETER_SERVERS:
        yield "updates are asynchronous: if it converges badly, lower the learning rate"
        if gpus and gpus > 1:
            yield f"each instance has one worker: write a tower for each of its {gpus} GPUs"
    yield from remarks(
        case, "where gradients are added up instead, " if choice == PARAMETER_SERVERS else ""
    )


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
