"""Checks of tuning jobs, beside those of the trials' own job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.stand_in.refusals import invalid
from distrain_nb.tuning.engine import require

EPOCHS = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")
_MOST_RANGES = 30
_KINDS = ("Integer", "Continuous", "Categorical")


def refuse_tuning(request: Mapping[str, Any]) -> None:
    """Raise ApiError for a tuning job that the service would not take, or that a rehearsal can't
    run. The trials' own job is for others to look at."""
    config, definition = request["HyperParameterTuningJobConfig"], definition_of(request)
    _check_rehearsed(request, definition)
    _check_objective(config, definition)
    _check_ranges(config, definition)
    _check_strategy(config, definition)


def definition_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition of the trials' job. Raises ApiError where there isn't one."""
    if bool(request.get("TrainingJobDefinition")) == bool(request.get("TrainingJobDefinitions")):
        raise invalid(
            "You must specify either TrainingJobDefinition or TrainingJobDefinitions, not both."
        )
    if "TrainingJobDefinitions" in request:
        raise invalid("A rehearsal tunes one TrainingJobDefinition.")
    definition: Mapping[str, Any] = request["TrainingJobDefinition"]
    return definition


def ranges_of(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the kind and the range of each parameter."""
    for kind in _KINDS:
        for entry in config.get("ParameterRanges", {}).get(f"{kind}ParameterRanges", ()):
            yield kind, entry


def most_epochs(config: Mapping[str, Any], definition: Mapping[str, Any]) -> int | None:
    """Return Hyperband's `MaxResource`, or what the service takes for it; None without any."""
    resource = (
        config.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {}).get("MaxResource")
    )
    fixed = definition.get("StaticHyperParameters", {})
    candidates = [resource, *(fixed.get(name) for name in EPOCHS)]
    return next(
        (int(candidate) for candidate in candidates if candidate and str(candidate).isdecimal()),
        None,
    )


def _check_rehearsed(request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    if "ResourceConfig" not in definition:
        raise invalid("A rehearsal needs the ResourceConfig of the training jobs.")
    for name in ("TuningObjective", "HyperParameterRanges"):
        if name in definition:
            raise invalid(f"{name} is for several TrainingJobDefinitions only.")
    if request.get("Autotune") and not list(ranges_of(request["HyperParameterTuningJobConfig"])):
        raise invalid("A rehearsal has no ranges of its own: give some beside Autotune.")
    try:
        require("optuna", "a rehearsal of a tuning job")
    except DistrainError as missing:
        raise invalid(str(missing)) from None


def _check_objective(config: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    objective = config.get("HyperParameterTuningJobObjective")
    if not objective:
        raise invalid("HyperParameterTuningJobObjective is required for a custom algorithm.")
    defined = definition["AlgorithmSpecification"].get("MetricDefinitions", ())
    if objective["MetricName"] not in [metric["Name"] for metric in defined]:
        raise invalid(
            f"The objective metric {objective['MetricName']} must be one of the metrics that "
            "MetricDefinitions of the AlgorithmSpecification define."
        )


def _check_ranges(config: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    ranges = list(ranges_of(config))
    names = Counter(entry["Name"] for _, entry in ranges)
    if not ranges:
        raise invalid("ParameterRanges must have at least one hyperparameter to tune.")
    if len(ranges) > _MOST_RANGES:
        raise invalid(f"There are {len(ranges)} parameter ranges; at most {_MOST_RANGES} can be.")
    both = names.keys() & definition.get("StaticHyperParameters", {}).keys()
    for name in (*(name for name, count in names.items() if count > 1), *sorted(both)):
        raise invalid(f"Hyperparameter {name} is given more than once.")
    for kind, entry in ranges:
        if kind != "Categorical":
            _check_bounds(kind, entry)


def _check_bounds(kind: str, entry: Mapping[str, Any]) -> None:
    read = int if kind == "Integer" else float
    try:
        low, high = read(entry["MinValue"]), read(entry["MaxValue"])
    except ValueError:
        raise invalid(
            f"{entry['Name']}: MinValue and MaxValue must be of type {kind}, not "
            f"{entry['MinValue']!r} and {entry['MaxValue']!r}."
        ) from None
    if not low < high:
        raise invalid(f"{entry['Name']}: MinValue {low} must be less than MaxValue {high}.")
    scaling = entry.get("ScalingType")
    if scaling == "Logarithmic" and low <= 0:
        raise invalid(f"{entry['Name']}: Logarithmic scaling works for values greater than 0 only.")
    if scaling == "ReverseLogarithmic" and (kind == "Integer" or not 0 <= low < high < 1):
        raise invalid(
            f"{entry['Name']}: ReverseLogarithmic scaling works for continuous ranges within "
            "0 <= x < 1.0 only."
        )


def _check_strategy(config: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    strategy, limits = config["Strategy"], config["ResourceLimits"]
    early = config.get("TrainingJobEarlyStoppingType", "Off")
    if strategy == "Grid":
        _check_grid(config)
    elif "MaxNumberOfTrainingJobs" not in limits:
        raise invalid(f"MaxNumberOfTrainingJobs is required for the strategy {strategy}.")
    if strategy == "Hyperband" and early != "Off":
        raise invalid("TrainingJobEarlyStoppingType must be Off with the strategy Hyperband.")
    if strategy == "Hyperband" and most_epochs(config, definition) is None:
        raise invalid(
            "MaxResource must be given, or be inferred from one of the static hyperparameters "
            f"{', '.join(EPOCHS)}."
        )
    if strategy != "Hyperband" and config.get("StrategyConfig"):
        raise invalid("HyperbandStrategyConfig is for the strategy Hyperband only.")


def _check_grid(config: Mapping[str, Any]) -> None:
    count = 1
    for kind, entry in ranges_of(config):
        if kind != "Categorical":
            raise invalid(f"{entry['Name']}: the strategy Grid takes categorical parameters only.")
        count *= len(entry["Values"])
    most = config["ResourceLimits"].get("MaxNumberOfTrainingJobs", count)
    if most != count:
        raise invalid(f"MaxNumberOfTrainingJobs {most} must be the grid's {count}, or left out.")
