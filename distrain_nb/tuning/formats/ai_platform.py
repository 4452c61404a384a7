"""AI Platform Training: `hyperparameters` of a job's `trainingInput`, as in its `config.yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.ai_platform import from_training_input
from distrain_nb.layout.formats.pieces import Given, present
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
from distrain_nb.tuning.formats.vertex import ALGORITHMS, GOALS, SCALES
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import (
    Categorical,
    Discrete,
    Double,
    Goal,
    Integer,
    MedianStopping,
    Parameter,
    Search,
    StudySpec,
)

if TYPE_CHECKING:
    from distrain_nb.tuning.spec import Domain
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
        "goal": _word(GOALS, goals[0].direction),
        "params": [_parameter(parameter) for parameter in spec.parameters],
        "maxTrials": spec.trials,
        "maxParallelTrials": spec.parallel,
        "hyperparameterMetricTag": goals[0].metric,
        **present(
            maxFailedTrials=spec.max_failed or None,
            enableTrialEarlyStopping=True if spec.stopping else None,
            algorithm=_word(ALGORITHMS, spec.search.algorithm),
        ),
    }


def training_input(spec: StudySpec) -> dict[str, Json]:
    """Return the content of a `config.yaml` that has nothing but the study."""
    return {"trainingInput": {"hyperparameters": hyperparameters(spec)}}


def from_hyperparameters(value: object) -> ImportedStudy:
    """Read what `hyperparameters` gives, by itself or in a `trainingInput` with its layout.

    Raises OptionError, naming the path, for anything else.
    """
    outer = Given.of(value, "")
    within = dict(outer.values)
    if "trainingInput" not in within:
        within = {"trainingInput": {"hyperparameters": within}}
    inside = Given.of(within["trainingInput"], "trainingInput").values
    given = Given.of(inside.pop("hyperparameters", None), "trainingInput.hyperparameters")
    job = from_training_input({**within, "trainingInput": inside}) if inside else None
    goal = named(given, "goal", {**GOALS, "GOAL_TYPE_UNSPECIFIED": "max"}, "max")
    left: list[str] = []
    spec = StudySpec(
        tuple(_read(value, left) for value in values(given, "params", mapping_of)),
        (Goal(given.word("hyperparameterMetricTag") or METRIC, goal),),
        Search(named(given, "algorithm", _ALGORITHMS)),
        MedianStopping() if given.flag("enableTrialEarlyStopping") else None,
        count(given, "maxTrials") or 1,
        count(given, "maxParallelTrials") or 1,
        count(given, "maxFailedTrials"),
    )
    lost = (*left, *given.rest(), *(job.left_out if job else ()))
    return ImportedStudy("AI Platform config.yaml", spec, job.layout if job else None, lost)


def _parameter(parameter: Parameter) -> dict[str, Json]:
    domain = parameter.domain
    said: dict[str, Json] = {
        "parameterName": parameter.name,
        "type": _TYPES[type(domain)],
    }
    if isinstance(domain, Categorical):
        return {**said, "categoricalValues": list(domain.values)}
    if isinstance(domain, Discrete):
        said["discreteValues"] = list(domain.values)
    else:
        said |= {"minValue": domain.low, "maxValue": domain.high}
    return {**said, "scaleType": _word(SCALES, parameter.scale)}


def _read(given: Given, left: list[str]) -> Parameter:
    name = given.word("parameterName") or ""
    kind = named(given, "type", _KINDS)
    scale = named(given, "scaleType", _SCALES, "linear")
    domain: Domain
    if kind is Categorical:
        domain = Categorical(values(given, "categoricalValues", word_of))
    elif kind is Discrete:
        domain = Discrete(values(given, "discreteValues", real_of))
    elif kind is None:
        raise OptionError(f"{given.at('type')} is missing: expected {', '.join(_KINDS)}")
    else:
        low, high = real(given, "minValue", 0.0) or 0.0, real(given, "maxValue", 0.0) or 0.0
        domain = Integer(int(low), int(high)) if kind is Integer else Double(low, high)
    left += given.done()
    return Parameter(name, domain, scale)


def _word(names: dict[str, str], value: str | None) -> str | None:
    return next((name for name, item in names.items() if item == value), None)
