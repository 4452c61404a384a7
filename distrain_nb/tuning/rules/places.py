"""Rules about where a study runs: what a place can't do, and what it leaves out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.errors import shown
from distrain_nb.layout.place import place_of
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.rules.repairs import (
    at,
    error,
    instead,
    joined,
    linear,
    noted,
    positive,
    renamed,
    setting,
    unconditional,
)
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import (
    Categorical,
    ConvexStopping,
    DecayCurveStopping,
    Discrete,
    Double,
    HyperbandStopping,
    Integer,
    MedianStopping,
    Search,
    StudyEnd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.findings import Finding, Fix
    from distrain_nb.tuning.spec import StudySpec

_VERTEX, _SAGEMAKER, _AI_PLATFORM = "Vertex AI", "SageMaker", "AI Platform"
VERTEX_VALUES = 1000
# What the API itself takes, by the names of its shapes.
SAGEMAKER_VALUES, SAGEMAKER_PARAMETERS = 30, 30  # ParameterValues, …ParameterRanges
SAGEMAKER_SECONDS = (120, 15_768_000)  # HyperParameterTuningMaxRuntimeInSeconds
SAGEMAKER_NO_PROGRESS = 3  # MaxNumberOfTrainingJobsNotImproving
SAGEMAKER_MOST_STEPS = 20_000  # of hyperband's MaxResource
# "Resource limits for automatic model tuning": what an account has at first, and at most.
SAGEMAKER_PARALLEL = (10, 100)
SAGEMAKER_TRIALS, SAGEMAKER_RANDOM_TRIALS = 750, 10_000


def place_findings(spec: StudySpec, place: str) -> Iterator[Finding]:
    """Check a study against the limits of a place. Where no service tunes, trials are suggested
    here; a service unknown here has no limits."""
    known = place_of(place)
    if known is not None and not known.tunes:
        yield from _suggested_here(spec, known.title)
    elif place == "vertex":
        yield from _vertex(spec)
    elif place == "sagemaker":
        yield from _sagemaker(spec)
        yield from _sagemaker_parameters(spec)
        yield from _sagemaker_end(spec)
        yield from _sagemaker_budget(spec)
    elif place == "ai-platform":
        yield from _ai_platform(spec)


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
        yield _left_out("--noise", title, "observation noise", noise=None)
    if isinstance(spec.stopping, (ConvexStopping, HyperbandStopping)):
        name = "convex" if isinstance(spec.stopping, ConvexStopping) else "hyperband"
        fix = setting("Stop by the median", stopping=MedianStopping())
        yield error("--stop", "stop-place", f"{title} has no {name} stopping", fix)
    yield from _positive_reverse_log(spec, title)


def _positive_reverse_log(spec: StudySpec, place: str) -> Iterator[Finding]:
    for parameter in spec.parameters:
        ranged = not isinstance(parameter.domain, Categorical)
        if parameter.scale == "reverse-log" and ranged and not positive(parameter):
            message = f"a reverse-log scale on {place} needs values above 0, also the first of them"
            yield error(at(parameter), "tune-scale", message, linear(parameter))


def _without_spaces(spec: StudySpec) -> Iterator[Finding]:
    """Yield names as Vertex AI has them: "must not contain whitespaces"."""
    for parameter in spec.parameters:
        if (better := _joined(parameter.name)) != parameter.name and better:
            message = f"{_VERTEX} takes no spaces in a name, as in {shown(parameter.name)}"
            fix = renamed(parameter.name, better)
            yield error(at(parameter), "tune-name-place", message, fix)
    for goal in spec.goals:
        if _joined(goal.metric) not in ("", goal.metric):
            message = f"{_VERTEX} takes no spaces in a metric, as in {shown(goal.metric)}"
            where = f"--goal {goal.direction}:{goal.metric}"
            yield error(where, "goal-metric-place", message)


def _joined(name: str) -> str:
    return re.sub(r"\s+", "_", name.strip())


def _vertex(spec: StudySpec) -> Iterator[Finding]:
    yield from _no_algorithm(spec, ("tpe",), _VERTEX)
    yield from _no_first_trials(spec, _VERTEX)
    if spec.search.seed is not None:
        yield _left_out("--search", _VERTEX, "a seed", search=Search(spec.search.algorithm, None))
    if spec.noise:
        yield _left_out("--noise", "its tuning jobs", "observation noise", noise=None)
    yield from _no_defaults(spec, "its tuning jobs")
    if isinstance(spec.stopping, HyperbandStopping):
        fix = setting("Stop by the median", stopping=MedianStopping())
        yield error("--stop", "stop-place", f"{_VERTEX} has no hyperband stopping", fix)
    for parameter in spec.parameters:
        domain = parameter.domain
        if isinstance(domain, Discrete) and len(domain.values) > VERTEX_VALUES:
            message = f"{parameter.name} has {len(domain.values)} values: {_VERTEX} takes 1,000"
            yield error(at(parameter), "tune-values", message)
    yield from _without_spaces(spec)
    yield from _positive_reverse_log(spec, _VERTEX)


def _ai_platform(spec: StudySpec) -> Iterator[Finding]:
    yield from _positive_reverse_log(spec, _AI_PLATFORM)
    yield from _no_algorithm(spec, ("tpe",), _AI_PLATFORM)
    yield from _no_first_trials(spec, _AI_PLATFORM)
    yield from _one_goal(spec, _AI_PLATFORM)
    yield from _no_conditions(spec, _AI_PLATFORM)
    yield from _no_defaults(spec, _AI_PLATFORM)
    if spec.search.seed is not None:
        yield _left_out(
            "--search", _AI_PLATFORM, "a seed", search=Search(spec.search.algorithm, None)
        )
    yield from _no_service_choices(spec, _AI_PLATFORM)
    if spec.stopping not in (None, MedianStopping()):
        fix = setting("Leave it to the service", stopping=MedianStopping())
        yield error(
            "--stop", "stop-place", f"{_AI_PLATFORM} has only its own rule for stopping", fix
        )
    if spec.end != StudyEnd():
        yield _left_out("--end", _AI_PLATFORM, joined(_end_names(spec.end)), end=StudyEnd())


def _sagemaker(spec: StudySpec) -> Iterator[Finding]:
    yield from _no_algorithm(spec, ("tpe",), _SAGEMAKER)
    yield from _no_first_trials(spec, _SAGEMAKER)
    yield from _one_goal(spec, _SAGEMAKER)
    yield from _no_conditions(spec, _SAGEMAKER)
    yield from _no_defaults(spec, _SAGEMAKER)
    yield from _no_service_choices(spec, _SAGEMAKER)
    if spec.max_failed:
        yield _left_out("--max-failed", _SAGEMAKER, "a bound of failed trials", max_failed=None)
    median = setting("Stop by the median", stopping=MedianStopping())
    if isinstance(spec.stopping, (DecayCurveStopping, ConvexStopping)):
        message = f"{_SAGEMAKER} stops trials by the median or by hyperband only"
        yield error("--stop", "stop-place", message, median)
    elif spec.stopping == MedianStopping(True):
        message = f"{_SAGEMAKER} stops trials by their epochs, not by their time"
        yield error("--stop", "stop-place", message, median)
    elif isinstance(spec.stopping, HyperbandStopping) and spec.search.algorithm:
        message = "hyperband chooses the trials itself: leave --search out"
        fix = setting("Leave the search out", search=Search(None, spec.search.seed))
        yield error("--search", "search-hyperband", message, fix)
    count = combinations(spec)
    if spec.search.algorithm == "grid" and count is not None and count > spec.trials:
        message = f"{_SAGEMAKER} runs all {count:,} trials of the grid, not {spec.trials:,}"
        fix = setting(f"Run {count:,}", trials=count)
        if count > SAGEMAKER_TRIALS:
            fix = setting("Search at random", search=Search("random", spec.search.seed))
        yield noted("--trials", "trials-grid", message, fix)
    if len(spec.parameters) > SAGEMAKER_PARAMETERS:
        message = f"{len(spec.parameters)} parameters: {_SAGEMAKER} takes {SAGEMAKER_PARAMETERS}"
        yield error("--tune", "tune-count", message)


def _sagemaker_parameters(spec: StudySpec) -> Iterator[Finding]:
    for parameter in spec.parameters:
        domain, where = parameter.domain, at(parameter)
        if isinstance(domain, Discrete):
            message = (
                f"{_SAGEMAKER} takes the numbers of {parameter.name} as words: their order"
                f"{'' if parameter.scale == 'linear' else ' and scale'} is lost to the search"
            )
            yield noted(where, "tune-words", message)
        if isinstance(domain, (Discrete, Categorical)) and len(domain.values) > SAGEMAKER_VALUES:
            message = f"{parameter.name} has {len(domain.values)} values: {_SAGEMAKER} takes 30"
            yield error(where, "tune-values", message)
        if parameter.scale == "reverse-log" and isinstance(domain, (Double, Integer)):
            low, high = float(domain.low), float(domain.high)
            if isinstance(domain, Integer) or not (low >= 0 and high < 1):
                message = f"{_SAGEMAKER} has a reverse-log scale for numbers from 0 to below 1 only"
                yield error(where, "tune-scale", message, linear(parameter))
        if spec.search.algorithm == "grid" and isinstance(domain, Integer):
            message = f"{_SAGEMAKER} has grids of listed values only; {parameter.name} is a range"
            fixes = [setting("Search at random", search=Search("random", spec.search.seed))]
            if domain.high - domain.low < SAGEMAKER_VALUES:
                values = tuple(map(float, range(domain.low, domain.high + 1)))
                every = instead("List its values", parameter, domain=Discrete(values))
                fixes.insert(0, every)
            yield error(where, "search-grid", message, *fixes)


def _sagemaker_end(spec: StudySpec) -> Iterator[Finding]:
    end = spec.end
    supported = StudyEnd(
        max_duration=end.max_duration, max_trials_no_progress=end.max_trials_no_progress
    )
    if end != supported:
        lost = joined(_end_names(replace(end, max_duration=None, max_trials_no_progress=None)))
        yield _left_out("--end", _SAGEMAKER, lost, end=supported)
    low, high = SAGEMAKER_SECONDS
    if end.max_duration is not None and not low <= end.max_duration <= high:
        bounded = min(max(end.max_duration, low), high)
        message = f"max-duration is {end.max_duration:g} s: {_SAGEMAKER} takes {low} to {high:,}"
        fix = setting(f"Take {bounded:g} s", end=replace(end, max_duration=float(bounded)))
        yield error("--end", "end-number", message, fix)
    trials = end.max_trials_no_progress
    if trials is not None and trials < SAGEMAKER_NO_PROGRESS:
        message = f"max-trials-no-progress is {trials}: {_SAGEMAKER} takes 3 or more"
        fix = setting("Take 3", end=replace(end, max_trials_no_progress=SAGEMAKER_NO_PROGRESS))
        yield error("--end", "end-number", message, fix)


def _sagemaker_budget(spec: StudySpec) -> Iterator[Finding]:
    """Yield errors for what no account can have, warnings for what it has to be raised to."""
    usual, most = SAGEMAKER_PARALLEL
    if spec.parallel > usual:
        fix = setting(f"Run {usual} at once", parallel=usual)
        yield _over("--parallel", "parallel-place", f"{spec.parallel:,} trials at once",
                    (usual, most), fix, spec.parallel)  # fmt: skip
    at_random = spec.search.algorithm == "random"
    limit = SAGEMAKER_TRIALS, SAGEMAKER_RANDOM_TRIALS if at_random else SAGEMAKER_TRIALS
    if spec.trials > limit[0]:
        fix = setting(f"Run {limit[0]} trials", trials=limit[0])
        if spec.search.algorithm == "grid":  # of which fewer trials would be no grid
            fix = setting("Search at random", search=Search("random", spec.search.seed))
        yield _over("--trials", "trials-place", f"{spec.trials:,} trials", limit, fix, spec.trials)
    stopping = spec.stopping
    if isinstance(stopping, HyperbandStopping):
        bounds = {"min-steps": stopping.min_steps, "max-steps": stopping.max_steps}
        for name, value in bounds.items():
            if value is not None and not 1 <= value <= SAGEMAKER_MOST_STEPS:
                bounded = min(max(value, 1), SAGEMAKER_MOST_STEPS)
                changed = replace(stopping, **{name.replace("-", "_"): bounded})
                message = f"{name} is {value}: {_SAGEMAKER} takes 1 to {SAGEMAKER_MOST_STEPS:,}"
                yield error("--stop", "stop-steps-place", message,
                            setting(f"Take {bounded:,}", stopping=changed))  # fmt: skip


def _over(
    where: str,
    code: str,
    subject: str,
    limit: tuple[int, int],
    fix: Fix[StudySpec],
    count: int,
) -> Finding:
    usual, most = limit
    if count > most:
        return error(where, code, f"{subject}: {_SAGEMAKER} takes up to {most:,}", fix)
    message = f"{subject}: {_SAGEMAKER} takes {usual:,} unless the account's quota has been raised"
    return noted(where, code, message, fix)


def _no_algorithm(spec: StudySpec, names: tuple[str, ...], place: str) -> Iterator[Finding]:
    if spec.search.algorithm in names:
        message = (
            f"{place} has no search called {spec.search.algorithm}: its default is Bayesian too"
        )
        fix = setting(f"Use {place}'s own", search=Search(None, spec.search.seed))
        yield error("--search", "search-place", message, fix)


def _no_first_trials(spec: StudySpec, place: str) -> Iterator[Finding]:
    if spec.initial:
        message = f"{place} takes no trials to begin with"
        yield error("--initial", "initial-place", message, setting("Leave them out", initial=()))


def _one_goal(spec: StudySpec, place: str) -> Iterator[Finding]:
    first = (objectives(spec) or list(spec.goals))[:1]
    if len(spec.goals) > 1:
        message = f"{place} has studies of one goal"
        fix = setting(f"Keep {joined(goal.metric for goal in first)}", goals=tuple(first))
        yield error("--goal", "goal-count", message, fix)


def _no_conditions(spec: StudySpec, place: str) -> Iterator[Finding]:
    for parameter in (parameter for parameter in spec.parameters if parameter.condition):
        message = f"{place} has no conditions: {parameter.name} is there in some trials only"
        where = at(parameter)
        yield error(where, "tune-condition-place", message, unconditional(parameter))


def _no_defaults(spec: StudySpec, place: str) -> Iterator[Finding]:
    for parameter in (
        parameter for parameter in spec.parameters if parameter.domain.default is not None
    ):
        plain = replace(parameter.domain, default=None)
        fix = instead("Remove the default", parameter, domain=plain)
        message = f"{place} take{'s' if place in (_SAGEMAKER, _AI_PLATFORM) else ''} no default"
        yield noted(at(parameter), "left-out", f"{message}: it is left out", fix)


def _no_service_choices(spec: StudySpec, place: str) -> Iterator[Finding]:
    if spec.noise:
        yield _left_out("--noise", place, "observation noise", noise=None)
    if spec.measurement:
        yield _left_out("--measurement", place, "a choice of measurements", measurement=None)


def _left_out(where: str, place: str, subject: str, **changes: object) -> Finding:
    message = f"{subject} has no effect on {place} and is left out"
    return noted(where, "left-out", message, setting("Remove it", **changes))


def _end_names(end: StudyEnd) -> Iterator[str]:
    for name, value in vars(end).items():
        if value is not None:
            yield name.replace("_", "-")
