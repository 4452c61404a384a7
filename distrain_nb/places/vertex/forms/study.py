"""Vertex AI: `studySpec` and numbers of trials, as a `HyperparameterTuningJob` has them in JSON,
and as the `config.yaml` of `gcloud ai hp-tuning-jobs create`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.letter_case import camel_keys
from distrain_nb.layout.formats.mappings import MappingReader, present, whole_number
from distrain_nb.layout.formats.mappings import MappingReader as Part
from distrain_nb.places.vertex.forms.specs import from_specs
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
    Domain,
    Double,
    Goal,
    Integer,
    Parameter,
    Scale,
    Search,
    StudySpec,
)

if TYPE_CHECKING:
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
            algorithm=name_for(ALGORITHMS, spec.search.algorithm),
            observationNoise=name_for(_NOISE, spec.noise),
            measurementSelectionType=name_for(_MEASUREMENTS, spec.measurement),
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
    reader = MappingReader.of(value, "")
    part = reader.below("studySpec")
    trials = reader.values.pop("trialJobSpec", None)
    job = from_specs(trials) if trials else None
    rule, spec_left = stopping.read_automated(part)
    end, end_left = stopping.read_end(part.below("studyStoppingConfig"))
    dropped: list[str] = []
    spec = StudySpec(
        tuple(_read_parameters(part, dropped)),
        tuple(_read_goal(value, dropped) for value in values(part, "metrics", mapping_of)),
        Search(_enumerated(part, "algorithm", ALGORITHMS)),
        rule,
        count(reader, "maxTrialCount") or 1,
        count(reader, "parallelTrialCount") or 1,
        count(reader, "maxFailedTrialCount"),
        noise=_enumerated(part, "observationNoise", _NOISE),
        measurement=_enumerated(part, "measurementSelectionType", _MEASUREMENTS),
        end=end,
    )
    of_trials = [f"trialJobSpec.{path}" for path in job.left_out] if job else []
    lost = (*dropped, *spec_left, *end_left, *of_trials, *reader.rest(part))
    return ImportedStudy("Vertex AI tuning job", spec, job.layout if job else None, lost)


def _metric(goal: Goal) -> dict[str, Json]:
    fields: dict[str, Json] = {"metricId": goal.metric, "goal": name_for(GOALS, goal.direction)}
    if goal.safety_threshold is not None:
        safety: dict[str, Json] = {"safetyThreshold": goal.safety_threshold}
        if goal.safe_fraction is not None:
            safety["desiredMinSafeTrialsFraction"] = goal.safe_fraction
        fields["safetyConfig"] = safety
    return fields


def _read_goal(reader: Part, dropped: list[str]) -> Goal:
    safe = "safetyConfig" in reader.values
    safety = reader.below("safetyConfig")
    goal = Goal(
        reader.word("metricId") or "",
        _enumerated(reader, "goal", GOALS) or "max",
        real(safety, "safetyThreshold", 0.0) if safe else None,
        real(safety, "desiredMinSafeTrialsFraction"),
    )
    dropped += reader.done(safety)
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
                f"{parameter.name} depends on {parameter.condition.parent}, which must be "
                "one other parameter, with a list of words or numbers, or with whole numbers"
            )
    return roots


def _node(spec: StudySpec, parameter: Parameter, written: list[Parameter]) -> dict[str, Json]:
    written.append(parameter)
    fields: dict[str, Json] = {
        "parameterId": parameter.name,
        _SPECS[type(parameter.domain)]: _domain(parameter.domain),
    }
    if not isinstance(parameter.domain, Categorical):
        fields["scaleType"] = name_for(SCALES, parameter.scale)
    children = list(_children(spec, parameter, written))
    return {**fields, **present(conditionalParameterSpecs=children)}


def _children(
    spec: StudySpec, parent: Parameter, written: list[Parameter]
) -> Iterator[dict[str, Json]]:
    alone = sum(parameter.name == parent.name for parameter in spec.parameters) == 1
    key = _CONDITIONS.get(type(parent.domain))
    for child in spec.parameters:
        if alone and key and child.condition and child.condition.parent == parent.name:
            condition: dict[str, Json] = {key: {"values": list(child.condition.values)}}
            yield {**condition, "parameterSpec": _node(spec, child, written)}


def _domain(domain: Domain) -> dict[str, Json]:
    fields: dict[str, Json]
    if isinstance(domain, (Double, Integer)):
        fields = {"minValue": domain.low, "maxValue": domain.high}
    else:
        fields = {"values": list(domain.values)}
    return fields if domain.default is None else {**fields, "defaultValue": domain.default}


def _read_parameters(reader: Part, dropped: list[str]) -> Iterator[Parameter]:
    for value in values(reader, "parameters", mapping_of):
        yield from _read_node(value, None, dropped)


def _read_node(
    reader: Part, condition: Condition | None, dropped: list[str]
) -> Iterator[Parameter]:
    name = reader.word("parameterId") or ""
    domain = _read_domain(reader, dropped)
    scale: Scale = _enumerated(reader, "scaleType", SCALES) or "linear"
    yield Parameter(name, domain, scale, condition)
    for child in values(reader, "conditionalParameterSpecs", mapping_of):
        below = child.below("parameterSpec")
        condition_of_child = _read_condition(child, name)
        dropped += child.done()
        yield from _read_node(below, condition_of_child, dropped)
    dropped += reader.done()


def _read_condition(child: Part, parent: str) -> Condition:
    for kind, key in _CONDITIONS.items():
        if key in child.values:
            read: Any = {Integer: whole_number, Discrete: real_of, Categorical: word_of}[kind]
            return Condition(parent, values(child.below(key), "values", read))
    raise OptionError(f"{child.at('parameterSpec')} has no values of its parent")


def _read_domain(reader: Part, dropped: list[str]) -> Domain:
    kind = next((kind for kind, key in _SPECS.items() if key in reader.values), None)
    if kind is None:
        expected = ", ".join(_SPECS.values())
        raise OptionError(f"{reader.path or 'a parameter'} has no values: expected {expected}")
    part = reader.below(_SPECS[kind])
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
    dropped += part.done()
    return domain


def _enumerated(reader: Part, key: str, names: dict[str, str]) -> Any:
    """Look up the word of an enumeration; None for `..._UNSPECIFIED`."""
    if str(reader.values.get(key, "")).endswith(_UNSAID):
        del reader.values[key]
    return named(reader, key, names)


def name_for(names: dict[str, str], value: str | None) -> str | None:
    return next((name for name, word in names.items() if word == value), None)
