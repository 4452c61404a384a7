"""Rules about where a study runs: what a place can't do, and what it leaves out.

The functions with a title are shared by the rules of the places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distrain_nb.findings import Finding
from distrain_nb.layout.place import place_of
from distrain_nb.tuning.place import study_place
from distrain_nb.tuning.rules.repairs import (
    error,
    joined,
    linear,
    parameter_place,
    positive,
    setting,
    study_warning,
    unconditional,
    with_fields,
)
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import (
    Categorical,
    ConvexStopping,
    HyperbandStopping,
    MedianStopping,
    Search,
    StudyEnd,
    StudySpec,
)


def place_findings(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Check a study against the limits of a place. Where no service tunes, trials are suggested
    here; a service unknown here has no limits."""
    terms = place_of(place)
    if terms is not None and not terms.tunes:
        yield from _suggested_here(spec, terms.title)
    elif here := study_place(place):
        yield from here.findings(spec)


def _suggested_here(spec: StudySpec, title: str) -> Iterator[Finding]:
    if spec.end != StudyEnd():
        fix = setting("Leave it out", end=StudyEnd())
        yield error("--end", "end-place", f"--end is not known on {title} yet", fix)
    for number, goal in enumerate(spec.goals):
        if goal.safety_threshold is not None and objectives(spec):
            remaining = spec.goals[:number] + spec.goals[number + 1 :]
            message = f"a threshold of --goal is not known on {title} yet"
            fix = setting(f"Leave {goal.metric} out", goals=remaining)
            yield error(f"--goal {goal.direction}:{goal.metric}", "goal-place", message, fix)
    if spec.noise:
        yield left_out("--noise", title, "observation noise", noise=None)
    if isinstance(spec.stopping, (ConvexStopping, HyperbandStopping)):
        name = "convex" if isinstance(spec.stopping, ConvexStopping) else "hyperband"
        fix = setting("Stop by the median", stopping=MedianStopping())
        yield error("--stop", "stop-place", f"{title} has no {name} stopping", fix)
    yield from positive_reverse_log(spec, title)


def positive_reverse_log(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Refuse reverse-log scales of values that aren't above 0."""
    for parameter in spec.parameters:
        ranged = not isinstance(parameter.domain, Categorical)
        if parameter.scale == "reverse-log" and ranged and not positive(parameter):
            message = f"a reverse-log scale on {place} needs values above 0, also the first of them"
            yield error(parameter_place(parameter), "tune-scale", message, linear(parameter))


def no_algorithm(spec: StudySpec, names: tuple[str, ...], place: str) -> Iterator[Finding]:
    """Refuse searches that a place doesn't have."""
    if spec.search.algorithm in names:
        message = (
            f"{place} has no search called {spec.search.algorithm}: its default is Bayesian too"
        )
        fix = setting(f"Use {place}'s own", search=Search(None, spec.search.seed))
        yield error("--search", "search-place", message, fix)


def no_first_trials(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Refuse trials to begin with."""
    if spec.initial:
        message = f"{place} takes no trials to begin with"
        yield error("--initial", "initial-place", message, setting("Leave them out", initial=()))


def one_goal(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Refuse more than one goal."""
    first = (objectives(spec) or list(spec.goals))[:1]
    if len(spec.goals) > 1:
        message = f"{place} has studies of one goal"
        fix = setting(f"Keep {joined(goal.metric for goal in first)}", goals=tuple(first))
        yield error("--goal", "goal-count", message, fix)


def no_conditions(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Refuse parameters that are there in some trials only."""
    for parameter in (parameter for parameter in spec.parameters if parameter.condition):
        message = f"{place} has no conditions: {parameter.name} is there in some trials only"
        where = parameter_place(parameter)
        yield error(where, "tune-condition-place", message, unconditional(parameter))


def no_defaults(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Warn that defaults of parameters are left out."""
    for parameter in (
        parameter for parameter in spec.parameters if parameter.domain.default is not None
    ):
        plain = replace(parameter.domain, default=None)
        fix = with_fields("Remove the default", parameter, domain=plain)
        message = f"{place} take{'' if place.endswith('jobs') else 's'} no default"
        yield study_warning(
            parameter_place(parameter), "left-out", f"{message}: it is left out", fix
        )


def no_service_choices(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Warn that noise and measurement are left out."""
    if spec.noise:
        yield left_out("--noise", place, "observation noise", noise=None)
    if spec.measurement:
        yield left_out("--measurement", place, "a choice of measurements", measurement=None)


def left_out(where: str, place: str, subject: str, **changes: object) -> Finding:
    """Return the warning that a part of a study has no effect."""
    message = f"{subject} has no effect on {place} and is left out"
    return study_warning(where, "left-out", message, setting("Remove it", **changes))


def end_names(end: StudyEnd) -> Iterator[str]:
    """Yield the names of the limits that are set, as options have them."""
    for name, value in vars(end).items():
        if value is not None:
            yield name.replace("_", "-")
