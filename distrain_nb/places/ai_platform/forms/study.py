"""AI Platform Training: `hyperparameters` of a job's `trainingInput`, as in its `config.yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.mappings import MappingReader, present
from distrain_nb.places.ai_platform.forms.training_input import from_training_input
from distrain_nb.places.vertex.forms.study import ALGORITHMS, GOALS, SCALES, name_for
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
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import (
    Categorical,
    Discrete,
    Domain,
    Double,
    Goal,
    Integer,
    MedianStopping,
    Parameter,
    Search,
    StudySpec,
)

if TYPE_CHECKING:
    from distrain_nb.types import Json

# What a trial reports where the job doesn't say.
METRIC = "training/hptuning/metric"

_TYPES = {Double: "DOUBLE", Integer: "INTEGER", Discrete: "DISCRETE", Categorical: "CATEGORICAL"}
_KINDS = {name: kind for kind, name in _TYPES.items()}
_ALGORITHMS: dict[str, Any] = {**ALGORITHMS, "ALGORITHM_UNSPECIFIED": None}
_SCALES = {**SCALES, "NONE": "linear"}


def hyperparameters(spec: StudySpec) -> dict[str, Json]:
    """Return a study as a `HyperparameterSpec`: its first goal, and parameters without conditions.

    Any early stopping is the service's own. Raises OptionError for a study without a goal.
    """
    goals = objectives(spec)
    if not goals:
        raise OptionError("a study needs a goal, such as --goal min:val/loss")
    return {
        "goal": name_for(GOALS, goals[0].direction),
        "params": [_parameter(parameter) for parameter in spec.parameters],
        "maxTrials": spec.trials,
        "maxParallelTrials": spec.parallel,
        "hyperparameterMetricTag": goals[0].metric,
        **present(
            maxFailedTrials=spec.max_failed or None,
            enableTrialEarlyStopping=True if spec.stopping else None,
            algorithm=name_for(ALGORITHMS, spec.search.algorithm),
        ),
    }


def training_input(spec: StudySpec) -> dict[str, Json]:
    """Return the content of a `config.yaml` that has nothing but the study."""
    return {"trainingInput": {"hyperparameters": hyperparameters(spec)}}


def from_hyperparameters(value: object) -> ImportedStudy:
    """Read what `hyperparameters` gives, by itself or in a `trainingInput` with its layout.

    Raises OptionError, naming the path, for anything else.
    """
    outer = MappingReader.of(value, "")
    within = dict(outer.values)
    if "trainingInput" not in within:
        within = {"trainingInput": {"hyperparameters": within}}
    inside = MappingReader.of(within["trainingInput"], "trainingInput").values
    reader = MappingReader.of(inside.pop("hyperparameters", None), "trainingInput.hyperparameters")
    job = from_training_input({**within, "trainingInput": inside}) if inside else None
    goal = named(reader, "goal", {**GOALS, "GOAL_TYPE_UNSPECIFIED": "max"}, "max")
    dropped: list[str] = []
    spec = StudySpec(
        tuple(_read(value, dropped) for value in values(reader, "params", mapping_of)),
        (Goal(reader.word("hyperparameterMetricTag") or METRIC, goal),),
        Search(named(reader, "algorithm", _ALGORITHMS)),
        MedianStopping() if reader.flag("enableTrialEarlyStopping") else None,
        count(reader, "maxTrials") or 1,
        count(reader, "maxParallelTrials") or 1,
        count(reader, "maxFailedTrials"),
    )
    lost = (*dropped, *reader.rest(), *(job.left_out if job else ()))
    return ImportedStudy("AI Platform config.yaml", spec, job.layout if job else None, lost)


def _parameter(parameter: Parameter) -> dict[str, Json]:
    domain = parameter.domain
    fields: dict[str, Json] = {
        "parameterName": parameter.name,
        "type": _TYPES[type(domain)],
    }
    if isinstance(domain, Categorical):
        return {**fields, "categoricalValues": list(domain.values)}
    if isinstance(domain, Discrete):
        fields["discreteValues"] = list(domain.values)
    else:
        fields |= {"minValue": domain.low, "maxValue": domain.high}
    return {**fields, "scaleType": name_for(SCALES, parameter.scale)}


def _read(reader: MappingReader, dropped: list[str]) -> Parameter:
    name = reader.word("parameterName") or ""
    kind = named(reader, "type", _KINDS)
    scale = named(reader, "scaleType", _SCALES, "linear")
    domain: Domain
    if kind is Categorical:
        domain = Categorical(values(reader, "categoricalValues", word_of))
    elif kind is Discrete:
        domain = Discrete(values(reader, "discreteValues", real_of))
    elif kind is None:
        raise OptionError(f"{reader.at('type')} is missing: expected {', '.join(_KINDS)}")
    else:
        low, high = real(reader, "minValue", 0.0) or 0.0, real(reader, "maxValue", 0.0) or 0.0
        domain = Integer(int(low), int(high)) if kind is Integer else Double(low, high)
    dropped += reader.done()
    return Parameter(name, domain, scale)
