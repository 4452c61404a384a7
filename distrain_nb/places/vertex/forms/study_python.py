"""Studies in Python for Vertex AI's SDK: `HyperparameterTuningJob`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.layout.formats.python_names import Call
from distrain_nb.layout.formats.python_values import known_values
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.tuning.formats.pieces import ImportedStudy, is_whole, items, name_parameter
from distrain_nb.tuning.formats.python import arguments_of
from distrain_nb.tuning.place import PythonStudies

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

_PYTHON = re.compile(
    r"\bHyperparameterTuningJob\(|ParameterSpec\("
    r"|^[ \t]*\w*(study_spec|STUDY_SPEC)[ \t]*=(?!=)",
    re.MULTILINE,
)
_TUNER = "HyperparameterTuningJob"
_SCALES = {
    "linear": "UNIT_LINEAR_SCALE",
    "log": "UNIT_LOG_SCALE",
    "reverse_log": "UNIT_REVERSE_LOG_SCALE",
    "unspecified": "SCALE_TYPE_UNSPECIFIED",
}
_ALGORITHMS = {"grid": "GRID_SEARCH", "random": "RANDOM_SEARCH"}
_SDK_MEASUREMENTS = {"best": "BEST_MEASUREMENT", "last": "LAST_MEASUREMENT"}
_SPAN = ("min", "max", "scale", "conditional_parameter_spec", "parent_values")
# In the order of the SDK, whose notebooks give some of them without names.
_POSITIONS: dict[str, tuple[str, ...]] = {
    "DoubleParameterSpec": _SPAN,
    "IntegerParameterSpec": _SPAN,
    "CategoricalParameterSpec": ("values", "conditional_parameter_spec", "parent_values"),
    "DiscreteParameterSpec": ("values", "scale", "conditional_parameter_spec", "parent_values"),
    "HyperparameterTuningJob": (
        *("display_name", "custom_job", "metric_spec", "parameter_spec", "max_trial_count"),
        "parallel_trial_count",
    ),
}
_COUNTS = ("max_trial_count", "parallel_trial_count", "max_failed_trial_count")
# The parts of a value of the API, by the class of the SDK: its own key, and that of a condition on
# it.
_KINDS = {
    "DoubleParameterSpec": ("double_value_spec", ""),
    "IntegerParameterSpec": ("integer_value_spec", "parent_int_values"),
    "CategoricalParameterSpec": ("categorical_value_spec", "parent_categorical_values"),
    "DiscreteParameterSpec": ("discrete_value_spec", "parent_discrete_values"),
}


def _from_job(job: Call) -> ImportedStudy:
    """Read a job of Vertex AI's SDK, or of its API, which has a `study_spec`."""
    values, dropped = arguments_of(job)
    starts = [step for step in job.steps if step.name in ("run", "submit")]
    dropped += [f"run.{name}" for step in starts for name in step.values]
    if "study_spec" in values:
        read = from_tuning_job(values)
        return replace(read, left_out=(*dropped, *read.left_out))
    arguments: dict[str, Unknown] = dict(values)
    goals = arguments.pop("metric_spec", None)
    specs = arguments.pop("parameter_spec", None)
    study: dict[str, object] = {
        "metrics": [{"metric_id": name, "goal": str(goal).upper()} for name, goal in items(goals)],
        "parameters": list(_parameters(specs, "parameter_spec", dropped)),
        "measurement_selection_type": _SDK_MEASUREMENTS.get(
            arguments.pop("measurement_selection", "best")
        ),
    }
    if algorithm := arguments.pop("search_algorithm", None):
        study["algorithm"] = _ALGORITHMS.get(algorithm, algorithm)
    counts = {name: arguments.pop(name) for name in _COUNTS if name in arguments}
    read = from_tuning_job({"study_spec": study, **counts})
    rest = [name for name, value in arguments.items() if value not in (None, "", {}, [])]
    return replace(read, form="Vertex AI tuning job", left_out=(*dropped, *rest, *read.left_out))


def _parameters(specs: object, path: str, dropped: list[str]) -> Iterator[dict[str, object]]:
    """Yield the parameters as the API has them; those that can't be read are named."""
    for name, spec in items(specs):
        path_of_parameter = f"{path}.{name}"
        if not isinstance(spec, Call) or spec.name not in _KINDS or not is_whole(spec, _SPAN[:2]):
            name_parameter(path_of_parameter, dropped)
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


def _parents(children: object, child: Mapping[str, object]) -> list[object]:
    assert isinstance(children, dict)
    return list(children[child["parameter_id"]].values.get("parent_values") or [])


def _from_value(name: object, value: Any) -> ImportedStudy | None:
    """Read a request, a `StudySpec`, or a dictionary of parameters."""
    if isinstance(value, dict) and ("study_spec" in value or {"metrics", "parameters"} <= {*value}):
        clean, dropped = known_values({str(name): value})
        read = from_tuning_job(clean[str(name)])
        return replace(read, left_out=(*dropped, *read.left_out))
    kinds = {kind.name for _, kind in items(value) if isinstance(kind, Call)}
    if kinds & _KINDS.keys():
        return _from_job(Call(_TUNER, 0, [], {"parameter_spec": value}))
    return None


STUDIES = PythonStudies(_PYTHON, _TUNER, _POSITIONS, _from_job, _from_value)
