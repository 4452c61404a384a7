"""SageMaker, as studies know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distrain_nb.findings import Finding, Fix
from distrain_nb.layout.formats.form import as_json
from distrain_nb.places.sagemaker.forms import study_python
from distrain_nb.places.sagemaker.forms.study import from_tuning_config, tuning_config
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.place import StudyForm, StudyPlace
from distrain_nb.tuning.rules.places import (
    end_names,
    left_out,
    no_algorithm,
    no_conditions,
    no_defaults,
    no_first_trials,
    no_service_choices,
    one_goal,
)
from distrain_nb.tuning.rules.repairs import (
    error,
    joined,
    linear,
    parameter_place,
    setting,
    study_warning,
    with_fields,
)
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
    StudySpec,
)

_TITLE = "SageMaker"
# What the API itself takes, by the names of its shapes.
MOST_VALUES, MOST_PARAMETERS = 30, 30  # ParameterValues, …ParameterRanges
SECONDS = (120, 15_768_000)  # HyperParameterTuningMaxRuntimeInSeconds
LEAST_NO_PROGRESS = 3  # MaxNumberOfTrainingJobsNotImproving
MOST_STEPS = 20_000  # of hyperband's MaxResource
# "Resource limits for automatic model tuning": what an account has at first, and at most.
PARALLEL = (10, 100)
TRIALS, RANDOM_TRIALS = 750, 10_000

_KEYS = ("HyperParameterTuningJobConfig", "ParameterRanges", "ResourceLimits")


def findings(spec: StudySpec) -> Iterator[Finding]:
    """Check a study against the limits of its tuning jobs."""
    yield from _choices(spec)
    yield from _parameters(spec)
    yield from _end(spec)
    yield from _budget(spec)


def _choices(spec: StudySpec) -> Iterator[Finding]:
    yield from no_algorithm(spec, ("tpe",), _TITLE)
    yield from no_first_trials(spec, _TITLE)
    yield from one_goal(spec, _TITLE)
    yield from no_conditions(spec, _TITLE)
    yield from no_defaults(spec, _TITLE)
    yield from no_service_choices(spec, _TITLE)
    if spec.max_failed:
        yield left_out("--max-failed", _TITLE, "a bound of failed trials", max_failed=None)
    median = setting("Stop by the median", stopping=MedianStopping())
    if isinstance(spec.stopping, (DecayCurveStopping, ConvexStopping)):
        message = f"{_TITLE} stops trials by the median or by hyperband only"
        yield error("--stop", "stop-place", message, median)
    elif spec.stopping == MedianStopping(True):
        message = f"{_TITLE} stops trials by their epochs, not by their time"
        yield error("--stop", "stop-place", message, median)
    elif isinstance(spec.stopping, HyperbandStopping) and spec.search.algorithm:
        message = "hyperband chooses the trials itself: leave --search out"
        fix = setting("Leave the search out", search=Search(None, spec.search.seed))
        yield error("--search", "search-hyperband", message, fix)
    count = combinations(spec)
    if spec.search.algorithm == "grid" and count is not None and count > spec.trials:
        message = f"{_TITLE} runs all {count:,} trials of the grid, not {spec.trials:,}"
        fix = setting(f"Run {count:,}", trials=count)
        if count > TRIALS:
            fix = setting("Search at random", search=Search("random", spec.search.seed))
        yield study_warning("--trials", "trials-grid", message, fix)
    if len(spec.parameters) > MOST_PARAMETERS:
        message = f"{len(spec.parameters)} parameters: {_TITLE} takes {MOST_PARAMETERS}"
        yield error("--tune", "tune-count", message)


def _parameters(spec: StudySpec) -> Iterator[Finding]:
    for parameter in spec.parameters:
        domain, where = parameter.domain, parameter_place(parameter)
        if isinstance(domain, Discrete):
            message = (
                f"{_TITLE} takes the numbers of {parameter.name} as words: their order"
                f"{'' if parameter.scale == 'linear' else ' and scale'} is lost to the search"
            )
            yield study_warning(where, "tune-words", message)
        if isinstance(domain, (Discrete, Categorical)) and len(domain.values) > MOST_VALUES:
            message = f"{parameter.name} has {len(domain.values)} values: {_TITLE} takes 30"
            yield error(where, "tune-values", message)
        if parameter.scale == "reverse-log" and isinstance(domain, (Double, Integer)):
            low, high = float(domain.low), float(domain.high)
            if isinstance(domain, Integer) or not (low >= 0 and high < 1):
                message = f"{_TITLE} has a reverse-log scale for numbers from 0 to below 1 only"
                yield error(where, "tune-scale", message, linear(parameter))
        if spec.search.algorithm == "grid" and isinstance(domain, Integer):
            message = f"{_TITLE} has grids of listed values only; {parameter.name} is a range"
            fixes = [setting("Search at random", search=Search("random", spec.search.seed))]
            if domain.high - domain.low < MOST_VALUES:
                values = tuple(map(float, range(domain.low, domain.high + 1)))
                every = with_fields("List its values", parameter, domain=Discrete(values))
                fixes.insert(0, every)
            yield error(where, "search-grid", message, *fixes)


def _end(spec: StudySpec) -> Iterator[Finding]:
    end = spec.end
    supported = StudyEnd(
        max_duration=end.max_duration, max_trials_no_progress=end.max_trials_no_progress
    )
    if end != supported:
        lost = joined(end_names(replace(end, max_duration=None, max_trials_no_progress=None)))
        yield left_out("--end", _TITLE, lost, end=supported)
    low, high = SECONDS
    if end.max_duration is not None and not low <= end.max_duration <= high:
        bounded = min(max(end.max_duration, low), high)
        message = f"max-duration is {end.max_duration:g} s: {_TITLE} takes {low} to {high:,}"
        fix = setting(f"Take {bounded:g} s", end=replace(end, max_duration=float(bounded)))
        yield error("--end", "end-number", message, fix)
    trials = end.max_trials_no_progress
    if trials is not None and trials < LEAST_NO_PROGRESS:
        message = f"max-trials-no-progress is {trials}: {_TITLE} takes 3 or more"
        fix = setting("Take 3", end=replace(end, max_trials_no_progress=LEAST_NO_PROGRESS))
        yield error("--end", "end-number", message, fix)


def _budget(spec: StudySpec) -> Iterator[Finding]:
    """Yield errors for what no account can have, warnings for what it has to be raised to."""
    usual, most = PARALLEL
    if spec.parallel > usual:
        fix = setting(f"Run {usual} at once", parallel=usual)
        yield _over("--parallel", "parallel-place", f"{spec.parallel:,} trials at once",
                    (usual, most), fix, spec.parallel)  # fmt: skip
    at_random = spec.search.algorithm == "random"
    limit = TRIALS, RANDOM_TRIALS if at_random else TRIALS
    if spec.trials > limit[0]:
        fix = setting(f"Run {limit[0]} trials", trials=limit[0])
        if spec.search.algorithm == "grid":  # of which fewer trials would be no grid
            fix = setting("Search at random", search=Search("random", spec.search.seed))
        yield _over("--trials", "trials-place", f"{spec.trials:,} trials", limit, fix, spec.trials)
    stopping = spec.stopping
    if isinstance(stopping, HyperbandStopping):
        bounds = {"min-steps": stopping.min_steps, "max-steps": stopping.max_steps}
        for name, value in bounds.items():
            if value is not None and not 1 <= value <= MOST_STEPS:
                bounded = min(max(value, 1), MOST_STEPS)
                changed = replace(stopping, **{name.replace("-", "_"): bounded})
                message = f"{name} is {value}: {_TITLE} takes 1 to {MOST_STEPS:,}"
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
        return error(where, code, f"{subject}: {_TITLE} takes up to {most:,}", fix)
    message = f"{subject}: {_TITLE} takes {usual:,} unless the account's quota has been raised"
    return study_warning(where, code, message, fix)


STUDIES = StudyPlace(
    findings,
    (
        StudyForm(
            "sagemaker-json",
            "HyperParameterTuningJobConfig (JSON)",
            lambda spec: as_json(tuning_config(spec)),
        ),
    ),
    dict.fromkeys(_KEYS, from_tuning_config),
    (
        "SageMaker's HyperParameterTuningJobConfig in JSON",
        "a HyperparameterTuner of its SDK in Python",
    ),
    study_python.STUDIES,
)
