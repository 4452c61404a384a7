"""Rules about a whole study: goals, numbers of trials, search, stopping, first trials, its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from distrain_nb.errors import shown
from distrain_nb.findings import Finding, Fix
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.rules.repairs import (
    contains,
    error,
    joined,
    listed,
    setting,
    study_warning,
)
from distrain_nb.tuning.spec import (
    Condition,
    ConvexStopping,
    Double,
    Goal,
    HyperbandStopping,
    Search,
    StudySpec,
    Value,
)
from distrain_nb.tuning.text import initial_text


def study_findings(spec: StudySpec) -> Iterator[Finding]:
    """Check a study as a whole, wherever it runs."""
    yield from _empty(spec)
    yield from _goals(spec)
    yield from _numbers(spec)
    yield from _search(spec)
    yield from _stopping(spec)
    yield from _initial(spec)
    yield from _end(spec)


def objectives(spec: StudySpec) -> list[Goal]:
    """Return the goals that are optimized, not only kept safe."""
    return [goal for goal in spec.goals if goal.safety_threshold is None]


def _empty(spec: StudySpec) -> Iterator[Finding]:
    if not spec.parameters:
        yield error(
            "--tune", "study-empty", "a study needs a parameter, such as --tune lr=1e-5..0.1"
        )
    if not spec.goals:
        yield error("--goal", "study-goal", "a study needs a goal, such as --goal min:val/loss")


def _goals(spec: StudySpec) -> Iterator[Finding]:
    metrics: set[str] = set()
    for number, goal in enumerate(spec.goals):
        where = f"--goal {goal.direction}:{goal.metric}"
        rest = spec.goals[:number] + spec.goals[number + 1 :]
        if goal.metric in metrics:
            message = f"{goal.metric} is a goal twice"
            yield error(where, "goal-twice", message, setting("Keep the first", goals=rest))
        metrics.add(goal.metric)
        if not goal.metric.strip():
            message = f"invalid metric {shown(goal.metric)}: expected a name"
            yield error(where, "goal-metric", message)
        fraction = goal.safe_fraction
        if fraction is not None and (goal.safety_threshold is None or not 0 <= fraction <= 1):
            message = f"the fraction {fraction} of {goal.metric}: expected 0 to 1, with a threshold"
            before = (*spec.goals[:number], replace(goal, safe_fraction=None))
            fix = setting("Remove the fraction", goals=(*before, *spec.goals[number + 1 :]))
            yield error(where, "goal-fraction", message, fix)
    if spec.goals and not objectives(spec):
        first = replace(spec.goals[0], safety_threshold=None, safe_fraction=None)
        message = "every goal has a threshold: leave out one, for the goal to optimize"
        fix = setting(f"Optimize {first.metric}", goals=(first, *spec.goals[1:]))
        yield error("--goal", "goal-safety", message, fix)


def _numbers(spec: StudySpec) -> Iterator[Finding]:
    if spec.trials < 1:
        message = f"{spec.trials} trials: expected 1 or more"
        yield error("--trials", "trials", message, setting("Run 1 trial", trials=1))
    if spec.parallel < 1:
        message = f"{spec.parallel} trials at once: expected 1 or more"
        yield error("--parallel", "parallel", message, setting("One at a time", parallel=1))
    elif spec.parallel > spec.trials >= 1:
        message = f"{spec.parallel} trials at once, of {spec.trials} in all"
        fix = setting(f"Run {spec.trials} at once", parallel=spec.trials)
        yield study_warning("--parallel", "parallel", message, fix)
    if spec.max_failed is not None and spec.max_failed < 0:
        message = f"{spec.max_failed} failed trials: expected 0 or more"
        yield error("--max-failed", "max-failed", message, setting("Leave it out", max_failed=None))


def _search(spec: StudySpec) -> Iterator[Finding]:
    search = spec.search
    if search.seed is not None and search.seed < 0:
        fix = setting("Remove the seed", search=Search(search.algorithm))
        yield error("--search", "search-seed", f"the seed {search.seed}: expected 0 or more", fix)
    if search.algorithm != "grid":
        return
    random = setting("Search at random", search=Search("random", search.seed))
    for parameter in spec.parameters:
        domain = parameter.domain
        if not isinstance(domain, Double):
            continue
        message = f"a grid needs single values, and {parameter.name} is a range without steps"
        sound = 0 < domain.low < domain.high or (
            parameter.scale == "linear" and domain.low < domain.high
        )
        sound = sound and math.isfinite(domain.high - domain.low)
        fixes = [listed(parameter), random] if sound else [random]
        yield error("--search", "search-grid", message, *fixes)
    count = combinations(spec)
    if count is not None and 0 < count < spec.trials:
        message = f"the grid has {count} trials, not {spec.trials}"
        yield study_warning(
            "--trials", "trials-grid", message, setting(f"Run {count}", trials=count)
        )


def _stopping(spec: StudySpec) -> Iterator[Finding]:
    stopping = spec.stopping
    never = setting("Let all trials end", stopping=None)
    if stopping and len(objectives(spec)) > 1:
        message = "trials can't be stopped early by several goals: they need not agree"
        yield error("--stop", "stop-goals", message, never)
    if isinstance(stopping, (ConvexStopping, HyperbandStopping)):
        low, high = stopping.min_steps, stopping.max_steps
        if low is not None and high is not None and low > high:
            message = f"trials would stop between step {low} and {high}: write the lesser first"
            turned = replace(stopping, min_steps=high, max_steps=low)
            yield error("--stop", "stop-steps", message, setting("Swap them", stopping=turned))
        if any(bound is not None and bound < 0 for bound in (low, high)):
            yield error("--stop", "stop-steps", "steps below 0 to stop a trial at", never)
    if isinstance(stopping, ConvexStopping) and stopping.learning_rate is not None:
        names = [parameter.name for parameter in spec.parameters]
        if stopping.learning_rate not in names:
            message = f"{stopping.learning_rate} isn't a parameter; there are {joined(names)}"
            without = replace(stopping, learning_rate=None)
            fix = setting("Leave the learning rate out", stopping=without)
            yield error("--stop", "stop-learning-rate", message, fix)


def _initial(spec: StudySpec) -> Iterator[Finding]:
    for trial in spec.initial:
        bad = _strangers(spec, trial)
        if bad:
            where = f"--initial {initial_text(trial)}"
            yield error(where, "initial", joined(bad.values()), _without_values(trial, set(bad)))
    if len(spec.initial) > spec.trials >= 1:
        message = f"{len(spec.initial)} trials to begin with, of {spec.trials} in all"
        more = setting(f"Run {len(spec.initial)} trials", trials=len(spec.initial))
        yield error("--initial", "initial-count", message, more)


def _strangers(spec: StudySpec, trial: Mapping[str, Value]) -> dict[str, str]:
    """Say what is wrong with the values of a first trial, by name."""
    problems: dict[str, str] = {}
    names = {parameter.name for parameter in spec.parameters}
    for name, value in trial.items():
        alike = [parameter for parameter in spec.parameters if parameter.name == name]
        if name not in names:
            problems[name] = f"{name} isn't a parameter"
        elif not any(contains(candidate.domain, value) for candidate in alike):
            problems[name] = f"{value} isn't a value of {name}"
        elif not any(_can_hold(candidate.condition, trial) for candidate in alike):
            problems[name] = f"the condition of {name} does not hold"
    return problems


def _can_hold(condition: Condition | None, trial: Mapping[str, Value]) -> bool:
    """Return whether a condition may hold in a trial: a parent that isn't given may have any
    value."""
    return condition is None or condition.parent not in trial or condition.holds(trial)


def _without_values(trial: Mapping[str, Value], names: set[str]) -> Fix[StudySpec]:
    remaining = {name: value for name, value in trial.items() if name not in names}

    def apply(spec: StudySpec) -> StudySpec:
        trials = (remaining if row == trial else row for row in spec.initial)
        return spec.edited(initial=tuple(trial for trial in trials if trial))

    return Fix(f"Remove {joined(sorted(names))} from it", apply)


def _end(spec: StudySpec) -> Iterator[Finding]:
    end = spec.end
    for bound in ("min", "max"):
        if getattr(end, f"{bound}_duration") is not None and getattr(end, f"{bound}_time"):
            message = f"{bound}-duration and {bound}-time: expected one of them"
            fix = setting(f"Keep {bound}-duration", end=replace(end, **{f"{bound}_time": None}))
            yield error("--end", "end-time", message, fix)
    for field in fields(end):
        value = getattr(end, field.name)
        if isinstance(value, (int, float)) and value < 0:
            name = field.name.replace("_", "-")
            fix = setting(f"Remove {name}", end=replace(end, **{field.name: None}))
            yield error("--end", "end-number", f"{name} is {value}: expected 0 or more", fix)
    progress = end.max_trials_no_progress, end.max_duration_no_progress
    if len(objectives(spec)) > 1 and any(figure is not None for figure in progress):
        reduced = replace(end, max_trials_no_progress=None, max_duration_no_progress=None)
        message = "only a study with one goal can end for lack of progress"
        yield study_warning("--end", "end-progress", message, setting("Leave it out", end=reduced))
