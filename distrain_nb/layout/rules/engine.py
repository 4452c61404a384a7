"""How rules are written, found, run and repaired.

A rule is a small function from a `ResolvedLayout` to the `Problem`s that it sees. A problem may
name repairs, which are only worked out when somebody wants them, and only shown once they have been
tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.layout.options import PLACES
from distrain_nb.layout.resolved import ResolvedLayout, resolve
from distrain_nb.layout.rules.change import Change, change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.pool import Role

MOST_FIXES = 4


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
    """A repair by field, where `workers__machine` is the path `workers.machine`."""
    return Repair(
        label, Edit(tuple((path.replace("__", "."), value) for path, value in changes.items()))
    )


def at(role: Role, **changes: Any) -> dict[str, Any]:
    """Fields of a role's pool, as `repair` takes them."""
    return {f"{role.value}__{field}": value for field, value in changes.items()}


@dataclass(frozen=True)
class Problem:
    """What a rule sees: the place, a sentence, and a function that gives repairs."""

    where: str
    message: str
    repairs: Callable[[], Iterable[Repair]] = tuple


@dataclass(frozen=True)
class Rule:
    """A rule with what the documentation says of it."""

    code: str
    severity: Severity
    places: tuple[str, ...]
    says: str
    source: str
    look: Callable[[ResolvedLayout], Iterator[Problem]]


RULES: dict[str, Rule] = {}


def rule(
    code: str,
    says: str,
    source: str,
    *,
    on: tuple[str, ...] = PLACES,
    severity: Severity = Severity.ERROR,
) -> Callable[
    [Callable[[ResolvedLayout], Iterator[Problem]]], Callable[[ResolvedLayout], Iterator[Problem]]
]:
    """Registers a function as the rule `code`; `source` holds keys of the table of sources."""

    def register(
        look: Callable[[ResolvedLayout], Iterator[Problem]],
    ) -> Callable[[ResolvedLayout], Iterator[Problem]]:
        if code in RULES:
            raise ValueError(f"two rules are called {code}")
        RULES[code] = Rule(code, severity, on, says, source, look)
        rules_for.cache_clear()  # a backend may bring its rules late
        return look

    return register


@lru_cache(maxsize=len(PLACES))
def rules_for(place: str) -> tuple[Rule, ...]:
    """The rules of a place. A layout whose place is unknown gets all that hold everywhere."""
    return tuple(rule for rule in RULES.values() if place in rule.places or rule.places == PLACES)


def verdict(job: ResolvedLayout) -> Iterator[tuple[Rule, Problem]]:
    """Everything that is wrong with a job, in the order of the rules."""
    for found in rules_for(job.layout.on):
        for problem in found.look(job):
            yield found, problem


class Trials:
    """What a job's repairs lead to, each layout looked at once though several lead to it."""

    def __init__(self, job: ResolvedLayout, problems: Iterable[tuple[Rule, Problem]]) -> None:
        self._job = job
        self._errors = _marks(problems, errors_only=True)
        self._done: dict[Layout, Trial] = {}

    def of(self, repaired: Layout) -> Trial:
        """What a repaired layout still has, what new errors it has, how much it changes."""
        if repaired not in self._done:
            after = resolve(repaired, self._job.channels, self._job.catalog, self._job.implied)
            problems = tuple(verdict(after))
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

    left: frozenset[tuple[str, str]]
    fresh: int
    change: Change


def finding(trials: Trials, found: Rule, problem: Problem) -> Finding:
    """The problem with those of its repairs that work, ranked."""
    fixes = _tried(trials, (found.code, problem.where), problem.repairs())
    return Finding(found.code, found.severity, problem.where, problem.message, fixes)


def _marks(
    problems: Iterable[tuple[Rule, Problem]], *, errors_only: bool
) -> frozenset[tuple[str, str]]:
    return frozenset(
        (rule.code, problem.where)
        for rule, problem in problems
        if rule.severity is Severity.ERROR or not errors_only
    )


def _tried(
    trials: Trials, mark: tuple[str, str], repairs: Iterable[Repair]
) -> tuple[Fix[Layout], ...]:
    """The repairs after which the problem is gone: without new errors first, then the smallest."""
    ranked: dict[Layout, tuple[tuple[int, Change, int], Repair]] = {}
    for number, candidate in enumerate(repairs):
        repaired = candidate.edit(trials.start)
        if repaired in ranked or repaired == trials.start:
            continue
        trial = trials.of(repaired)
        if mark not in trial.left:
            ranked[repaired] = (trial.fresh, trial.change, number), candidate
    best = sorted(ranked.values(), key=lambda pair: pair[0])
    return tuple(Fix(candidate.label, candidate.edit) for _, candidate in best[:MOST_FIXES])
