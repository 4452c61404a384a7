"""Vertex AI: `studySpec` and numbers of trials, as a `HyperparameterTuningJob` has them in JSON,
and as the `config.yaml` of `gcloud ai hp-tuning-jobs create`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.pieces import Given, camel_keys, present, whole
from distrain_nb.layout.formats.vertex import from_specs
from distrain_nb.tuning.formats import stopping
from distrain_nb.tuning.formats.pieces import (
    ImportedStudy,
    count,
    mapping_of,
    named,
    real,
    real_of,
    values,
    word_of,
)
from distrain_nb.tuning.spec import (
    Categorical,
    Condition,
    Discrete,
    Double,
    Goal,
    Integer,
    Parameter,
    Search,
    StudySpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.formats.pieces import Given as Part
    from distrain_nb.tuning.spec import Domain, Scale
    from distrain_nb.types import Json

SCALES = {
    "UNIT_LINEAR_SCALE": "linear",
    "UNIT_LOG_SCALE": "log",
    "UNIT_REVERSE_LOG_SCALE": "reverse-log",
}
ALGORITHMS = {"GRID_SEARCH": "grid", "RANDOM_SEARCH": "random"}
GOALS = {"MINIMIZE": "min", "MAXIMIZE": "max"}
_NOISE = {"LOW": "low", "HIGH": "high"}
_MEASUREMENTS = {"LAST_MEASUREMENT": "last", "BEST_MEASUREMENT": "best"}
_UNSAID = "UNSPECIFIED"
_SPECS = {
    Double: "doubleValueSpec",
    Integer: "integerValueSpec",
    Discrete: "discreteValueSpec",
    Categorical: "categoricalValueSpec",
}
_CONDITIONS = {
    Integer: "parentIntValues",
    Discrete: "parentDiscreteValues",
    Categorical: "parentCategoricalValues",
}


def tuning_job(spec: StudySpec) -> dict[str, Json]:
    """Write a study as a `HyperparameterTuningJob`, without the trials' own job.

    Raises OptionError for a condition on a name that is no parameter, or that several share.
    """
    return {
        "studySpec": study_spec(spec),
        "maxTrialCount": spec.trials,
        "parallelTrialCount": spec.parallel,
        **present(maxFailedTrialCount=spec.max_failed or None),
    }


def study_spec(spec: StudySpec) -> dict[str, Json]:
    """Return a study as a `StudySpec`. Raises OptionError as `tuning_job` does."""
    return {
        "metrics": [_metric(goal) for goal in spec.goals],
        "parameters": _tree(spec),
        **present(
            algorithm=_name(ALGORITHMS, spec.search.algorithm),
            observationNoise=_name(_NOISE, spec.noise),
            measurementSelectionType=_name(_MEASUREMENTS, spec.measurement),
            studyStoppingConfig=stopping.end_config(spec.end),
        ),
        **stopping.automated(spec.stopping),
    }


def from_tuning_job(value: object) -> ImportedStudy:
    """Read what `tuning_job` or `study_spec` gives, in snake case too, with a `trialJobSpec`.

    Raises OptionError, naming the path, for anything else.
    """
    value = camel_keys(value)
    if isinstance(value, dict) and "studySpec" not in value:
        value = {"studySpec": value}
    given = Given.of(value, "")
    part = given.below("studySpec")
    trials = given.values.pop("trialJobSpec", None)
    job = from_specs(trials) if trials else None
    rule, spec_left = stopping.read_automated(part)
    end, end_left = stopping.read_end(part.below("studyStoppingConfig"))
    left: list[str] = []
    spec = StudySpec(
        tuple(_read_parameters(part, left)),
        tuple(_read_goal(value, left) for value in values(part, "metrics", mapping_of)),
        Search(_said(part, "algorithm", ALGORITHMS)),
        rule,
        count(given, "maxTrialCount") or 1,
        count(given, "parallelTrialCount") or 1,
        count(given, "maxFailedTrialCount"),
        noise=_said(part, "observationNoise", _NOISE),
        measurement=_said(part, "measurementSelectionType", _MEASUREMENTS),
        end=end,
    )
    of_trials = [f"trialJobSpec.{path}" for path in job.left_out] if job else []
    lost = (*left, *spec_left, *end_left, *of_trials, *given.rest(part))
    return ImportedStudy("Vertex AI tuning job", spec, job.layout if job else None, lost)


def _metric(goal: Goal) -> dict[str, Json]:
    said: dict[str, Json] = {"metricId": goal.metric, "goal": _name(GOALS, goal.direction)}
    if goal.safety_threshold is not None:
        safety: dict[str, Json] = {"safetyThreshold": goal.safety_threshold}
        if goal.safe_fraction is not None:
            safety["desiredMinSafeTrialsFraction"] = goal.safe_fraction
        said["safetyConfig"] = safety
    return said


def _read_goal(given: Part, left: list[str]) -> Goal:
    safe = "safetyConfig" in given.values
    safety = given.below("safetyConfig")
    goal = Goal(
        given.word("metricId") or "",
        _said(given, "goal", GOALS) or "max",
        real(safety, "safetyThreshold", 0.0) if safe else None,
        real(safety, "desiredMinSafeTrialsFraction"),
    )
    left += given.done(safety)
    return goal


def _tree(spec: StudySpec) -> list[dict[str, Json]]:
    """Return parameters within those that they depend on."""
    written: list[Parameter] = []
    roots = [
        _node(spec, parameter, written)
        for parameter in spec.parameters
        if parameter.condition is None
    ]
    for parameter in spec.parameters:
        if parameter not in written and parameter.condition:
            raise OptionError(
                f"{parameter.name} depends on {parameter.condition.parent}, which has to be "
                "another parameter, one alone: a list of words or numbers, or whole numbers"
            )
    return roots


def _node(spec: StudySpec, parameter: Parameter, written: list[Parameter]) -> dict[str, Json]:
    written.append(parameter)
    said: dict[str, Json] = {
        "parameterId": parameter.name,
        _SPECS[type(parameter.domain)]: _domain(parameter.domain),
    }
    if not isinstance(parameter.domain, Categorical):
        said["scaleType"] = _name(SCALES, parameter.scale)
    children = list(_children(spec, parameter, written))
    return {**said, **present(conditionalParameterSpecs=children)}


def _children(
    spec: StudySpec, parent: Parameter, written: list[Parameter]
) -> Iterator[dict[str, Json]]:
    alone = sum(parameter.name == parent.name for parameter in spec.parameters) == 1
    key = _CONDITIONS.get(type(parent.domain))
    for child in spec.parameters:
        if alone and key and child.condition and child.condition.parent == parent.name:
            wanted: dict[str, Json] = {key: {"values": list(child.condition.values)}}
            yield {**wanted, "parameterSpec": _node(spec, child, written)}


def _domain(domain: Domain) -> dict[str, Json]:
    said: dict[str, Json]
    if isinstance(domain, (Double, Integer)):
        said = {"minValue": domain.low, "maxValue": domain.high}
    else:
        said = {"values": list(domain.values)}
    return said if domain.default is None else {**said, "defaultValue": domain.default}


def _read_parameters(given: Part, left: list[str]) -> Iterator[Parameter]:
    for value in values(given, "parameters", mapping_of):
        yield from _read_node(value, None, left)


def _read_node(given: Part, condition: Condition | None, left: list[str]) -> Iterator[Parameter]:
    name = given.word("parameterId") or ""
    domain = _read_domain(given, left)
    scale: Scale = _said(given, "scaleType", SCALES) or "linear"
    yield Parameter(name, domain, scale, condition)
    for child in values(given, "conditionalParameterSpecs", mapping_of):
        below = child.below("parameterSpec")
        wanted = _read_condition(child, name)
        left += child.done()
        yield from _read_node(below, wanted, left)
    left += given.done()


def _read_condition(child: Part, parent: str) -> Condition:
    for kind, key in _CONDITIONS.items():
        if key in child.values:
            each: Any = {Integer: whole, Discrete: real_of, Categorical: word_of}[kind]
            return Condition(parent, values(child.below(key), "values", each))
    raise OptionError(f"{child.at('parameterSpec')} has no values of its parent")


def _read_domain(given: Part, left: list[str]) -> Domain:
    kind = next((kind for kind, key in _SPECS.items() if key in given.values), None)
    if kind is None:
        expected = ", ".join(_SPECS.values())
        raise OptionError(f"{given.path or 'a parameter'} has no values: expected {expected}")
    part = given.below(_SPECS[kind])
    domain: Domain
    if kind is Double:
        low, high = real(part, "minValue", 0.0) or 0.0, real(part, "maxValue", 0.0) or 0.0
        domain = Double(low, high, real(part, "defaultValue"))
    elif kind is Integer:
        domain = Integer(
            part.number("minValue") or 0, part.number("maxValue") or 0, part.number("defaultValue")
        )
    elif kind is Discrete:
        domain = Discrete(values(part, "values", real_of), real(part, "defaultValue"))
    else:
        default = part.values.pop("defaultValue", None)
        listed = values(part, "values", word_of)
        domain = Categorical(listed, None if default is None else str(default))
    left += part.done()
    return domain


def _said(given: Part, key: str, names: dict[str, str]) -> Any:
    """Look up the word of an enumeration; None for `..._UNSPECIFIED`."""
    if str(given.values.get(key, "")).endswith(_UNSAID):
        del given.values[key]
    return named(given, key, names)


def _name(names: dict[str, str], value: str | None) -> str | None:
    return next((name for name, item in names.items() if item == value), None)
