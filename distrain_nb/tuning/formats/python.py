"""The clouds' SDKs in Python, read without running it: `HyperparameterTuningJob` of Vertex AI's,
and `HyperparameterTuner` of SageMaker's, with the machines of the trials where these are there."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.python_names import Call, Unread
from distrain_nb.layout.formats.python_source import PythonSource
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS, known_values
from distrain_nb.layout.formats.reading import from_python, reads_layout
from distrain_nb.layout.yamls import MOST_CHARACTERS
from distrain_nb.tuning.formats.sagemaker import from_tuning_config
from distrain_nb.tuning.formats.vertex import from_tuning_job
from distrain_nb.tuning.spec import Categorical, Discrete, StudySpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.tuning.formats.pieces import ImportedStudy
    from distrain_nb.tuning.spec import Parameter
    from distrain_nb.types import Unknown

_PYTHON = re.compile(
    r"\bHyperparameterTun(er|ingJob)\(|ParameterSpec\("
    r"|\b(Continuous|Integer|Categorical)Parameter\("
    r"|^[ \t]*\w*(study_spec|STUDY_SPEC)[ \t]*=(?!=)",
    re.MULTILINE,
)
_SCALES = {
    "linear": "UNIT_LINEAR_SCALE",
    "log": "UNIT_LOG_SCALE",
    "reverse_log": "UNIT_REVERSE_LOG_SCALE",
    "unspecified": "SCALE_TYPE_UNSPECIFIED",
}
_ALGORITHMS = {"grid": "GRID_SEARCH", "random": "RANDOM_SEARCH"}
_MEASUREMENTS = {"best": "BEST_MEASUREMENT", "last": "LAST_MEASUREMENT"}
_RANGE = ("min_value", "max_value", "scaling_type")
_SPAN = ("min", "max", "scale", "conditional_parameter_spec", "parent_values")
# In the order of the SDKs, whose notebooks give some of them without names.
_POSITIONS: dict[str, tuple[str, ...]] = {
    "DoubleParameterSpec": _SPAN,
    "IntegerParameterSpec": _SPAN,
    "CategoricalParameterSpec": ("values", "conditional_parameter_spec", "parent_values"),
    "DiscreteParameterSpec": ("values", "scale", "conditional_parameter_spec", "parent_values"),
    "ContinuousParameter": _RANGE,
    "IntegerParameter": _RANGE,
    "CategoricalParameter": ("values",),
    "HyperparameterTuner": (
        *("estimator", "objective_metric_name", "hyperparameter_ranges", "metric_definitions"),
        *("strategy", "objective_type", "max_jobs", "max_parallel_jobs"),
    ),
    "HyperparameterTuningJob": (
        *("display_name", "custom_job", "metric_spec", "parameter_spec", "max_trial_count"),
        "parallel_trial_count",
    ),
}
_COUNTS = ("max_trial_count", "parallel_trial_count", "max_failed_trial_count")
_OF_TRIALS = ("custom_job", "estimator", "model_trainer", "trial_job_spec")
# The parts of a value of the API, by the class of Vertex AI's SDK: its own key, and that of a
# condition on it.
_TUNERS = ("HyperparameterTuner", "HyperparameterTuningJob")
_KINDS = {
    "DoubleParameterSpec": ("double_value_spec", ""),
    "IntegerParameterSpec": ("integer_value_spec", "parent_int_values"),
    "CategoricalParameterSpec": ("categorical_value_spec", "parent_categorical_values"),
    "DiscreteParameterSpec": ("discrete_value_spec", "parent_discrete_values"),
}


def has_study(text: str) -> bool:
    """Return whether a text is Python that says what a study tries."""
    return len(text) <= MOST_CHARACTERS and bool(_PYTHON.search(text))


def study_from_python(text: str) -> ImportedStudy:
    """Read the first study in a piece of Python. Raises OptionError if there is none."""
    source = PythonSource(text, _is_wanted, {**PIPELINE_POSITIONS, **_POSITIONS})
    tuners = [call for call in source.calls if call.name in _TUNERS]
    if tuners:
        first, *rest = tuners
        read = _from_tuner(first) if first.name == _TUNERS[0] else _from_job(first)
        dropped = [*read.left_out, *first.late, *first.unnamed, *map(str, rest)]
    else:
        read, dropped = _from_names(source)
    if read.layout is None and reads_layout(text):
        machines = from_python(text)
        mine = {str(call) for call in tuners}
        dropped += [path for path in machines.left_out if path not in {*dropped, *mine}]
        read = replace(read, layout=machines.layout, script=machines.script)
        dropped = [path for path in dropped if path not in _OF_TRIALS]
    return replace(read, left_out=tuple(dict.fromkeys(dropped)))


def _is_wanted(call: Call) -> bool:
    return call.name in _TUNERS


def _from_job(job: Call) -> ImportedStudy:
    """Read a job of Vertex AI's SDK, or of its API, which has a `study_spec`."""
    values, dropped = _values(job)
    starts = [step for step in job.steps if step.name in ("run", "submit")]
    dropped += [f"run.{name}" for step in starts for name in step.values]
    if "study_spec" in values:
        read = from_tuning_job(values)
        return replace(read, left_out=(*dropped, *read.left_out))
    arguments: dict[str, Unknown] = dict(values)
    goals = arguments.pop("metric_spec", None)
    specs = arguments.pop("parameter_spec", None)
    study: dict[str, object] = {
        "metrics": [{"metric_id": name, "goal": str(goal).upper()} for name, goal in _items(goals)],
        "parameters": list(_parameters(specs, "parameter_spec", dropped)),
        "measurement_selection_type": _MEASUREMENTS.get(
            arguments.pop("measurement_selection", "best")
        ),
    }
    if algorithm := arguments.pop("search_algorithm", None):
        study["algorithm"] = _ALGORITHMS.get(algorithm, algorithm)
    counts = {name: arguments.pop(name) for name in _COUNTS if name in arguments}
    read = from_tuning_job({"study_spec": study, **counts})
    rest = [name for name, value in arguments.items() if value not in (None, "", {}, [])]
    return replace(read, form="Vertex AI tuning job", left_out=(*dropped, *rest, *read.left_out))


def _values(tuner: Call) -> tuple[dict[str, Unknown], list[str]]:
    """Return the arguments that can be read, without the job of the trials, which is a layout's."""
    values = tuner.settled()
    jobs = [name for name in _OF_TRIALS if isinstance(values.get(name), (Call, Unread))]
    for name in jobs:
        del values[name]
    clean, dropped = known_values(values)
    return clean, [*jobs, *dropped]


def _parameters(specs: object, path: str, dropped: list[str]) -> Iterator[dict[str, object]]:
    """Yield the parameters as the API has them; those that can't be read are named."""
    for name, spec in _items(specs):
        path_of_parameter = f"{path}.{name}"
        if not isinstance(spec, Call) or spec.name not in _KINDS or not _is_whole(spec):
            _name(path_of_parameter, dropped)
            continue
        key, condition = _KINDS[spec.name]
        values = spec.values
        fields: dict[str, object] = {"parameter_id": str(name)}
        if "values" in values:
            fields[key] = {"values": list(values["values"])}  # type: ignore[call-overload]
        else:
            fields[key] = {"min_value": values["min"], "max_value": values["max"]}
        if scale := values.get("scale"):
            fields["scale_type"] = _SCALES.get(str(scale), str(scale))
        children = values.get("conditional_parameter_spec")
        inner = f"{path_of_parameter}.conditional_parameter_spec"
        below = [
            {condition: {"values": list(_parents(children, child))}, "parameter_spec": child}
            for child in _parameters(children, inner, dropped)
        ]
        yield {**fields, **({"conditional_parameter_specs": below} if below else {})}


def _name(path: str, dropped: list[str]) -> None:
    """Name a parameter, unless a part of it is."""
    if not any(name.startswith(path) for name in dropped):
        dropped.append(path)


def _parents(children: object, child: Mapping[str, object]) -> list[object]:
    assert isinstance(children, dict)
    return list(children[child["parameter_id"]].values.get("parent_values") or [])


def _is_whole(spec: Call) -> bool:
    """Return whether the bounds or values of a parameter are known."""
    needed = ("values",) if "values" in spec.values else _POSITIONS[spec.name][:2]
    return all(_is_said(spec.values.get(name)) for name in needed)


def _is_said(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, (list, tuple)) and bool(value))


def _from_tuner(tuner: Call) -> ImportedStudy:
    """Read a tuner of SageMaker's SDK, as the request that it sends."""
    values, dropped = _values(tuner)
    arguments: dict[str, Unknown] = dict(values)
    ranges: dict[str, list[dict[str, object]]] = {
        "Integer": [],
        "Continuous": [],
        "Categorical": [],
    }
    numbers: dict[str, tuple[float, ...]] = {}
    listed = {
        str(name): span for name, span in _items(arguments.pop("hyperparameter_ranges", None))
    }
    for name, span in listed.items():
        if not isinstance(span, Call) or span.name not in _POSITIONS or not _is_whole(span):
            _name(f"hyperparameter_ranges.{name}", dropped)
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
            "StrategyConfig": _strategy(arguments),
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


def _items(value: object) -> Iterator[tuple[object, object]]:
    yield from value.items() if isinstance(value, dict) else ()


def _range(name: object, span: Call) -> dict[str, object]:
    values = span.values
    if "values" in values:
        return {"Name": str(name), "Values": list(values["values"])}  # type: ignore[call-overload]
    scaling = values.get("scaling_type")
    bounds = {"MinValue": values["min_value"], "MaxValue": values["max_value"]}
    return {"Name": str(name), **bounds, **({"ScalingType": scaling} if scaling else {})}


def _strategy(arguments: dict[str, Unknown]) -> dict[str, object]:
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
    """Yield lists of numbers are that again, which the service takes as words."""
    for parameter in spec.parameters:
        is_list = isinstance(parameter.domain, Categorical) and parameter.name in numbers
        yield replace(parameter, domain=Discrete(numbers[parameter.name])) if is_list else parameter


def _from_names(source: PythonSource) -> tuple[ImportedStudy, list[str]]:
    """Read what a text assigns and gives to no job: a request, a `StudySpec`, or parameters."""
    values: list[tuple[object, Any]] = [*reversed(source.names.items()), *source.shown]
    for name, value in values:
        if isinstance(value, dict) and (
            "study_spec" in value or {"metrics", "parameters"} <= {*value}
        ):
            clean, dropped = known_values({str(name): value})
            read = from_tuning_job(clean[str(name)])
            return read, [*dropped, *read.left_out]
    for _, value in values:
        kinds = {kind.name for _, kind in _items(value) if isinstance(kind, Call)}
        if kinds & _POSITIONS.keys():
            of_vertex = bool(kinds & _KINDS.keys())
            argument = "parameter_spec" if of_vertex else "hyperparameter_ranges"
            tuner = Call(_TUNERS[of_vertex], 0, [], {argument: value})
            read = _from_job(tuner) if of_vertex else _from_tuner(tuner)
            return read, list(read.left_out)
    raise OptionError(
        "this Python has no study that can be read: paste the cell with "
        "HyperparameterTuningJob(…), HyperparameterTuner(…), or the dictionary of their parameters"
    )
