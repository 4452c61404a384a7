"""How rules are written, found, run and repaired.

A rule is a small function from a `ResolvedLayout` to the `Problem`s that it sees. A problem may
name repairs, which are only worked out when somebody wants them, and only shown once they have been
tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import Place, place_of, places
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout, resolve
from distrain_nb.layout.rules.change import Change, change
from distrain_nb.layout.rules.variants import combined_repairs, place_in, with_machine_name

if TYPE_CHECKING:
    Places: TypeAlias = "tuple[str, ...] | Callable[[Place], bool] | None"

    Look: TypeAlias = "Callable[[ResolvedLayout], Iterator[Problem]]"

MOST_FIXES = 4

# By which a problem is known again: the rule's code, the place, the number of the alternative.
Mark: TypeAlias = "tuple[str, str, int]"


@dataclass(frozen=True)
class Edit:
    """A repair of a layout: new values at some paths."""

    changes: tuple[tuple[str, Any], ...]

    def __call__(self, layout: Layout) -> Layout:
        return layout.edited(dict(self.changes))


@dataclass(frozen=True)
class Repair:
    """A way to put a problem right, before anybody has tried it."""

    label: str
    edit: Edit


def repair(label: str, **changes: Any) -> Repair:
    """Return a repair by field: `workers__machine` stands for the path `workers.machine`."""
    return Repair(
        label, Edit(tuple((path.replace("__", "."), value) for path, value in changes.items()))
    )


def at(role: Role, **changes: Any) -> dict[str, Any]:
    """Return fields of a role's pool, as `repair` takes them."""
    return {f"{role.value}__{field}": value for field, value in changes.items()}


@dataclass(frozen=True)
class Problem:
    """What a rule sees: the place, a sentence, and a function that gives repairs. `variant` is the
    number of the alternative that it is about, 0 for the layout itself."""

    where: str
    message: str
    repairs: Callable[[], Iterable[Repair]] = tuple
    variant: int = 0


@dataclass(frozen=True)
class Rule:
    """A rule with what the documentation says of it.

    `on` names the places that it holds at, or tells them; None is everywhere. `of_each` says that
    it holds of each of a layout's variants; others look at all of them themselves.
    """

    code: str
    severity: Severity
    on: Places
    says: str
    source: str
    look: Look
    of_each: bool = True

    @property
    def places(self) -> tuple[str, ...]:
        """The names of the places that the rule holds at."""
        return tuple(filter(self.holds_at, places()))

    def holds_at(self, name: str) -> bool:
        """Return whether the rule holds at a place; one that nobody has declared has those of all
        places, and those that name it."""
        if self.on is None or isinstance(self.on, tuple):
            return self.on is None or name in self.on
        place = place_of(name)
        return place is not None and self.on(place)


RULES: dict[str, Rule] = {}


def rule(
    code: str,
    says: str,
    source: str,
    *,
    on: Places = None,
    severity: Severity = Severity.ERROR,
    of_each: bool = True,
) -> Callable[[Look], Look]:
    """Register a function as the rule `code`; `source` holds keys of the table of sources."""

    def register(look: Look) -> Look:
        name = code or look.__name__.replace("_", "-")
        if name in RULES:
            raise ValueError(f"two rules are called {name}")
        RULES[name] = Rule(name, severity, on, says, source, look, of_each)
        rules_for.cache_clear()  # a backend may bring its rules late
        return look

    return register


# Registers a function as the rule that has its name: `tpu_cores` is `tpu-cores`.
named_rule = partial(rule, "")
named_warning = partial(named_rule, severity=Severity.WARNING)


def all_rules() -> dict[str, Rule]:
    """Return the rules of all places by code."""
    places()  # which loads theirs
    return {rule.code: rule for rule in sorted(RULES.values(), key=_order)}


@lru_cache(maxsize=16)
def rules_for(name: str) -> tuple[Rule, ...]:
    """Return the rules of a place."""
    place_of(name)  # which loads them
    return tuple(sorted((it for it in RULES.values() if it.holds_at(name)), key=_order))


def _order(rule: Rule) -> tuple[str, int]:
    """Return a key that sorts rules as their files have them, whichever was loaded first."""
    return rule.look.__module__, rule.look.__code__.co_firstlineno


def has_tables(place: Place) -> bool:
    """Tell the places whose machines the fact tables know."""
    return place.offers is not None


def names_accelerators(place: Place) -> bool:
    """Tell the places whose requests name accelerators besides the machine."""
    return place.offers is not None and place.offers.names_accelerators


def all_problems(job: ResolvedLayout) -> Iterator[tuple[Rule, Problem]]:
    """Yield everything that is wrong with a job, in the order of the rules; what is wrong with one
    of its alternatives is wrong with the job."""
    layouts = job.layout.variants()[1:]
    others = [resolve(one, job.channels, job.catalog, job.implied) for one in layouts]
    for rule in rules_for(job.layout.on):
        if not others:
            yield from ((rule, problem) for problem in rule.look(job))
            continue
        problems = list(rule.look(job))
        messages = {(problem.where, problem.message) for problem in problems}
        alike: dict[str, list[tuple[int, Problem]]] = {}
        for number, other in enumerate(others if rule.of_each else (), 1):
            for problem in rule.look(other):
                if (problem.where, problem.message) not in messages:
                    messages.add((problem.where, problem.message))
                    where = place_in(job.layout, number, problem.where)
                    alike.setdefault(where, []).append((number, problem))
        for problem in problems:
            if problem.where in alike:
                alike[problem.where].insert(0, (0, problem))
            else:
                yield rule, problem
        yield from ((rule, _merged(job.layout, where, same)) for where, same in alike.items())


def _merged(layout: Layout, where: str, numbered: Sequence[tuple[int, Problem]]) -> Problem:
    """Return what is wrong with some of a layout's variants at one place."""

    def repairs() -> Iterator[Repair]:
        of_variants = {
            number: [(one.label, dict(one.edit.changes)) for one in problem.repairs()]
            for number, problem in numbered
        }
        for label, changes in combined_repairs(layout, of_variants):
            yield Repair(label, Edit(tuple(changes.items())))

    messages = (with_machine_name(layout, number, problem.message) for number, problem in numbered)
    return Problem(where, " ".join(messages), repairs)


def grouped(
    problems: Iterable[tuple[Rule, Problem]],
) -> Iterator[tuple[Rule, list[Problem]]]:
    """Yield the problems, those together that are the same with several pools and have repairs in
    common, or none at all."""
    groups: dict[tuple[str, str, str], tuple[Rule, list[Problem]]] = {}
    for rule, problem in problems:
        key = rule.code, problem.message, problem.where.partition(".")[2]
        groups.setdefault(key, (rule, []))[1].append(problem)
    for rule, alike in groups.values():
        if len(alike) == 1 or any(_together(alike)) or not any(map(_has_repairs, alike)):
            yield rule, alike
        else:
            yield from ((rule, [one]) for one in alike)


class Trials:
    """What a job's repairs lead to, each layout looked at once though several lead to it."""

    def __init__(self, job: ResolvedLayout, problems: Iterable[tuple[Rule, Problem]]) -> None:
        self._job = job
        self._errors = _marks(problems, errors_only=True)
        self._done: dict[Layout, Trial] = {}

    def of(self, repaired: Layout) -> Trial:
        """Return the problems that a repaired layout still has, its new errors and the size of the
        change."""
        if repaired not in self._done:
            after = resolve(repaired, self._job.channels, self._job.catalog, self._job.implied)
            problems = tuple(all_problems(after))
            fresh = _marks(problems, errors_only=True) - self._errors
            self._done[repaired] = Trial(
                _marks(problems, errors_only=False), len(fresh), change(self._job, after)
            )
        return self._done[repaired]

    @property
    def start(self) -> Layout:
        """The layout that is to be repaired."""
        return self._job.layout


class Trial(NamedTuple):
    """What is left of the problems after a repair, how many errors are new, what it changes."""

    remaining: frozenset[Mark]
    fresh: int
    change: Change


def finding(trials: Trials, rule: Rule, problems: Sequence[Problem]) -> Finding:
    """Return the finding for problems that share their words, with their common repairs that work,
    ranked."""
    first, *others = problems
    marks = {_mark(rule, problem) for problem in problems}
    fixes = _tried(trials, marks, _together(problems))
    also = tuple(problem.where for problem in others)
    return Finding(rule.code, rule.severity, first.where, first.message, fixes, also)


def _has_repairs(problem: Problem) -> bool:
    return any(problem.repairs())


def _together(problems: Sequence[Problem]) -> Iterator[Repair]:
    """Yield the repairs that the problems have in common, each for the pools of all of them."""
    roles = [problem.where.partition(".")[0] for problem in problems]
    first, *others = (
        {_apart(one, role): one for one in problem.repairs()}
        for problem, role in zip(problems, roles, strict=True)
    )
    named = f"the {', '.join(roles[:-1])} and the {roles[-1]}" if others else f"the {roles[0]}"
    for key, one in first.items():
        if all(key in other for other in others):
            edits = [one.edit, *(other[key].edit for other in others)]
            changes = tuple(dict(pair for edit in edits for pair in edit.changes).items())
            yield Repair(one.label.replace(f"the {roles[0]}", named), Edit(changes))


def _apart(one: Repair, role: str) -> tuple[str, frozenset[tuple[str, Any]]]:
    """Return a repair as a key that is the same for any pool."""
    changes = ((re.sub(rf"^{role}\b", "", path), value) for path, value in one.edit.changes)
    return one.label.replace(f"the {role}", "the pool"), frozenset(changes)


def _marks(problems: Iterable[tuple[Rule, Problem]], *, errors_only: bool) -> frozenset[Mark]:
    return frozenset(
        _mark(rule, problem)
        for rule, problem in problems
        if rule.severity is Severity.ERROR or not errors_only
    )


def _mark(rule: Rule, problem: Problem) -> Mark:
    return rule.code, problem.where, problem.variant


def _tried(trials: Trials, marks: set[Mark], repairs: Iterable[Repair]) -> tuple[Fix[Layout], ...]:
    """Return the repairs after which the problem is gone: those first that lose nothing that was
    asked for, then those without new errors, then the smallest."""
    ranked: dict[Layout, tuple[tuple[int, int, Change, int], Repair]] = {}
    for number, candidate in enumerate(repairs):
        repaired = candidate.edit(trials.start)
        if repaired in ranked or repaired == trials.start:
            continue
        trial = trials.of(repaired)
        if marks.isdisjoint(trial.remaining):
            rank = trial.change.lost, trial.fresh, trial.change, number
            ranked[repaired] = rank, candidate
    best = sorted(ranked.values(), key=lambda pair: pair[0])
    return tuple(Fix(candidate.label, candidate.edit) for _, candidate in best[:MOST_FIXES])
