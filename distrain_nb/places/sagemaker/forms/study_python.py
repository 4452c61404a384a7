"""Studies in Python for SageMaker's SDK: `HyperparameterTuner`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.layout.formats.python_names import Call
from distrain_nb.places.sagemaker.forms.study import from_tuning_config
from distrain_nb.tuning.formats.pieces import ImportedStudy, is_whole, items, name_parameter
from distrain_nb.tuning.formats.python import arguments_of
from distrain_nb.tuning.place import PythonStudies
from distrain_nb.tuning.spec import Categorical, Discrete, Parameter, StudySpec

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

_PYTHON = re.compile(
    r"\bHyperparameterTuner\(|\b(Continuous|Integer|Categorical)Parameter\(", re.MULTILINE
)
_TUNER = "HyperparameterTuner"
_RANGE = ("min_value", "max_value", "scaling_type")
# In the order of the SDK, whose notebooks give some of them without names.
_POSITIONS: dict[str, tuple[str, ...]] = {
    "ContinuousParameter": _RANGE,
    "IntegerParameter": _RANGE,
    "CategoricalParameter": ("values",),
    "HyperparameterTuner": (
        *("estimator", "objective_metric_name", "hyperparameter_ranges", "metric_definitions"),
        *("strategy", "objective_type", "max_jobs", "max_parallel_jobs"),
    ),
}


def _from_tuner(tuner: Call) -> ImportedStudy:
    """Read a tuner of SageMaker's SDK, as the request that it sends."""
    values, dropped = arguments_of(tuner)
    arguments: dict[str, Unknown] = dict(values)
    ranges: dict[str, list[dict[str, object]]] = {
        "Integer": [],
        "Continuous": [],
        "Categorical": [],
    }
    numbers: dict[str, tuple[float, ...]] = {}
    listed = {str(name): span for name, span in items(arguments.pop("hyperparameter_ranges", None))}
    for name, span in listed.items():
        if (
            not isinstance(span, Call)
            or span.name not in _POSITIONS
            or not is_whole(span, _RANGE[:2])
        ):
            name_parameter(f"hyperparameter_ranges.{name}", dropped)
            continue
        kind = span.name.removesuffix("Parameter")
        ranges[kind].append(_range(name, span))
        words = span.values.get("values")
        if isinstance(words, (list, tuple)) and all(map(_is_number, words)):
            numbers[name] = tuple(map(float, words))
    limits = {
        "MaxNumberOfTrainingJobs": arguments.pop("max_jobs", 1),
        "MaxParallelTrainingJobs": arguments.pop("max_parallel_jobs", 1),
        "MaxRuntimeInSeconds": arguments.pop("max_runtime_in_seconds", None),
    }
    read = from_tuning_config(
        {
            "Strategy": arguments.pop("strategy", "Bayesian"),
            "StrategyConfig": _strategy_of_call(arguments),
            "HyperParameterTuningJobObjective": {
                "MetricName": arguments.pop("objective_metric_name", ""),
                "Type": arguments.pop("objective_type", "Maximize"),
            },
            "ResourceLimits": {name: value for name, value in limits.items() if value is not None},
            "ParameterRanges": {f"{kind}ParameterRanges": name for kind, name in ranges.items()},
            "TrainingJobEarlyStoppingType": arguments.pop("early_stopping_type", "Off"),
            "RandomSeed": arguments.pop("random_seed", None),
        }
    )
    if any(
        not name.get("ScalingType") for kind in ("Integer", "Continuous") for name in ranges[kind]
    ):
        dropped.append("hyperparameter_ranges: scaling_type Auto (read as linear)")
    order = list(listed)
    parameters = sorted(_as_numbers(read.spec, numbers), key=lambda p: order.index(p.name))
    goals = tuple(goal for goal in read.spec.goals if goal.metric)
    spec = replace(read.spec, parameters=tuple(parameters), goals=goals)
    rest = [name for name, value in arguments.items() if value not in (None, False, "", {}, [])]
    left_out = (*dropped, *rest, *read.left_out)
    return replace(read, form="SageMaker tuner", spec=spec, left_out=left_out)


def _range(name: object, span: Call) -> dict[str, object]:
    values = span.values
    if "values" in values:
        return {"Name": str(name), "Values": list(values["values"])}  # type: ignore[call-overload]
    scaling = values.get("scaling_type")
    bounds = {"MinValue": values["min_value"], "MaxValue": values["max_value"]}
    return {"Name": str(name), **bounds, **({"ScalingType": scaling} if scaling else {})}


def _strategy_of_call(arguments: dict[str, Unknown]) -> dict[str, object]:
    config = arguments.get("strategy_config")
    band = config.values.get("hyperband_strategy_config") if isinstance(config, Call) else None
    if not isinstance(band, Call):
        return {}
    del arguments["strategy_config"]
    names = {"min_resource": "MinResource", "max_resource": "MaxResource"}
    bounds = {names[name]: band.values[name] for name in names if band.values.get(name)}
    return {"HyperbandStrategyConfig": bounds}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_numbers(spec: StudySpec, numbers: Mapping[str, tuple[float, ...]]) -> Iterator[Parameter]:
    """Yield the parameters with their lists of numbers as numbers, which the service takes as
    words."""
    for parameter in spec.parameters:
        is_list = isinstance(parameter.domain, Categorical) and parameter.name in numbers
        yield replace(parameter, domain=Discrete(numbers[parameter.name])) if is_list else parameter


def _from_value(_: object, value: object) -> ImportedStudy | None:
    """Read a dictionary of parameters."""
    kinds = {kind.name for _, kind in items(value) if isinstance(kind, Call)}
    if kinds & _POSITIONS.keys():
        return _from_tuner(Call(_TUNER, 0, [], {"hyperparameter_ranges": value}))
    return None


STUDIES = PythonStudies(_PYTHON, _TUNER, _POSITIONS, _from_tuner, _from_value)
