"""Rules about a whole study: goals, numbers of trials, search, stopping, first trials, its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from distrain_nb.errors import shown
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.spec import (
    EPSILON,
    Categorical,
    Condition,
    ConvexStopping,
    Discrete,
    Double,
    Goal,
    HyperbandStopping,
    Integer,
    Parameter,
    Search,
    StudySpec,
    Value,
)
from distrain_nb.tuning.text import head_text, initial_text


def error(where: str, code: str, message: str, *fixes: Fix[StudySpec]) -> Finding:
    """Return an error about a study."""
    return Finding(code, Severity.ERROR, where, message, fixes)


def study_warning(where: str, code: str, message: str, *fixes: Fix[StudySpec]) -> Finding:
    """Return a warning about a study."""
    return Finding(code, Severity.WARNING, where, message, fixes)


def parameter_place(parameter: Parameter) -> str:
    """Return the place of a parameter: the magic's line up to its values."""
    return f"--tune {head_text(parameter)}"


def setting(label: str, **changes: Any) -> Fix[StudySpec]:
    """Return other fields."""
    return Fix(label, lambda spec: spec.edited(**changes))


def with_fields(label: str, parameter: Parameter, **changes: Any) -> Fix[StudySpec]:
    """Return other fields of one parameter."""
    return _for_all(label, lambda p: replace(p, **changes) if p == parameter else p)


def without(parameter: Parameter) -> Fix[StudySpec]:
    """Return the study without one parameter."""

    def apply(spec: StudySpec) -> StudySpec:
        return spec.edited(parameters=tuple(p for p in spec.parameters if p != parameter))

    return Fix(f"Remove {parameter.name}", apply)


def unconditional(parameter: Parameter) -> Fix[StudySpec]:
    return with_fields(f"Give {parameter.name} to every trial", parameter, condition=None)


def linear(parameter: Parameter) -> Fix[StudySpec]:
    return with_fields(f"Use a linear scale for {parameter.name}", parameter, scale="linear")


def renamed(old: str, new: str) -> Fix[StudySpec]:
    """Replace one name by another, in conditions and first trials too."""

    def apply(spec: StudySpec) -> StudySpec:
        parameters = tuple(_renamed(parameter, old, new) for parameter in spec.parameters)
        initial = tuple(
            {new if name == old else name: value for name, value in trial.items()}
            for trial in spec.initial
        )
        return spec.edited(parameters=parameters, initial=initial)

    return Fix(f"Call it {new}", apply)


def listed(parameter: Parameter, count: int = 5) -> Fix[StudySpec]:
    """Return some values of a range, evenly on its scale, in the place of the range."""
    domain = parameter.domain
    assert isinstance(domain, Double)
    between = _spaced(domain.low, domain.high, parameter.scale, count)[1:-1]
    rounded = (min(max(float(f"{number:.6g}"), domain.low), domain.high) for number in between)
    values = tuple(dict.fromkeys((domain.low, *rounded, domain.high)))
    return with_fields(
        f"Try {len(values)} values of {parameter.name}", parameter, domain=Discrete(values)
    )


def positive(parameter: Parameter) -> bool:
    """Return whether a logarithm of each of its values exists."""
    domain = parameter.domain
    if isinstance(domain, (Double, Integer)):
        return min(domain.low, domain.high) > 0
    return isinstance(domain, Discrete) and all(value > 0 for value in domain.values)


def contains(domain: object, value: object) -> bool:
    """Return whether a value, of the type that the cell gets, is in a domain."""
    if isinstance(domain, Categorical) or isinstance(value, str):
        return isinstance(domain, Categorical) and value in domain.values
    if not isinstance(value, (int, float)):
        return False
    if isinstance(domain, Discrete):
        return any(abs(listed_value - value) <= EPSILON for listed_value in domain.values)
    if isinstance(domain, Integer) and not float(value).is_integer():
        return False
    return isinstance(domain, (Double, Integer)) and domain.low <= value <= domain.high


def joined(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


def _renamed(parameter: Parameter, old: str, new: str) -> Parameter:
    condition = parameter.condition
    if condition and condition.parent == old:
        condition = replace(condition, parent=new)
    name = new if parameter.name == old else parameter.name
    return replace(parameter, name=name, condition=condition)


def _for_all(label: str, change: Callable[[Parameter], Parameter]) -> Fix[StudySpec]:
    return Fix(label, lambda spec: spec.edited(parameters=tuple(map(change, spec.parameters))))


def _spaced(low: float, high: float, scale: str, count: int) -> list[float]:
    steps = [number / (count - 1) for number in range(count)]
    if scale == "linear":
        return [low + (high - low) * step for step in steps]
    if scale == "log":
        return [low * (high / low) ** step for step in steps]
    return [low + high - low * (high / low) ** (1 - step) for step in steps]


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
