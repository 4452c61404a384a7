"""SageMaker: the `HyperParameterTuningJobConfig` of a tuning job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.mappings import MappingReader, present
from distrain_nb.places.sagemaker.forms.request import from_training_job
from distrain_nb.tuning.choosing import combinations
from distrain_nb.tuning.formats.pieces import (
    ImportedStudy,
    count,
    mapping_of,
    named,
    real,
    values,
    word_of,
)
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import (
    Categorical,
    Discrete,
    Double,
    Goal,
    HyperbandStopping,
    Integer,
    MedianStopping,
    Parameter,
    Scale,
    Search,
    Stopping,
    StudyEnd,
    StudySpec,
)
from distrain_nb.tuning.words import written_number

if TYPE_CHECKING:
    from distrain_nb.types import Json

_BAYESIAN, _HYPERBAND = "Bayesian", "Hyperband"
_STRATEGIES: dict[str, Any] = {_BAYESIAN: None, "Random": "random", "Grid": "grid"}
_SCALES: dict[str, Scale] = {
    "Linear": "linear",
    "Logarithmic": "log",
    "ReverseLogarithmic": "reverse-log",
}
_GOALS = {"Minimize": "min", "Maximize": "max"}
_EARLY = "Auto"


def tuning_config(spec: StudySpec) -> dict[str, Json]:
    """Return a study as a `HyperParameterTuningJobConfig`: its first goal, parameters without
    conditions.

    The numbers of a list go as words. Raises OptionError for a study without a goal.
    """
    goals = objectives(spec)
    if not goals:
        raise OptionError("a study needs a goal, such as --goal min:val/loss")
    hyperband = isinstance(spec.stopping, HyperbandStopping)
    strategy = _HYPERBAND if hyperband else _strategy(spec.search)
    most: dict[str, Json] = {} if strategy == "Grid" else {"MaxNumberOfTrainingJobs": spec.trials}
    return {
        "Strategy": strategy,
        **present(StrategyConfig=_strategy_config(spec.stopping)),
        "HyperParameterTuningJobObjective": {
            "Type": "Minimize" if goals[0].direction == "min" else "Maximize",
            "MetricName": goals[0].metric,
        },
        "ResourceLimits": {
            **most,
            "MaxParallelTrainingJobs": spec.parallel,
            **present(MaxRuntimeInSeconds=_whole_seconds(spec.end.max_duration)),
        },
        "ParameterRanges": _ranges(spec),
        **present(
            TrainingJobEarlyStoppingType=_EARLY
            if isinstance(spec.stopping, MedianStopping)
            else None,
            TuningJobCompletionCriteria=_criteria(spec.end),
            RandomSeed=spec.search.seed,
        ),
    }


def from_tuning_config(value: object) -> ImportedStudy:
    """Read what `tuning_config` gives, or a `CreateHyperParameterTuningJob` request around one.

    Raises OptionError, naming the path, for anything else.
    """
    outer = MappingReader.of(value, "")
    is_request = "HyperParameterTuningJobConfig" in outer.values
    reader = outer.below("HyperParameterTuningJobConfig") if is_request else outer
    layout, dropped = _read_job(outer) if is_request else (None, [])
    outer.values.pop("HyperParameterTuningJobName", None)
    strategy = named(reader, "Strategy", {**_STRATEGIES, _HYPERBAND: _HYPERBAND})
    limits, criteria = reader.below("ResourceLimits"), reader.below("TuningJobCompletionCriteria")
    progress = criteria.below("BestObjectiveNotImproving")
    objective = reader.below("HyperParameterTuningJobObjective")
    end = StudyEnd(
        max_duration=real(limits, "MaxRuntimeInSeconds"),
        max_trials_no_progress=progress.number("MaxNumberOfTrainingJobsNotImproving"),
    )
    spec = StudySpec(
        tuple(_read_ranges(reader.below("ParameterRanges"), dropped)),
        (Goal(objective.word("MetricName") or "", named(objective, "Type", _GOALS, "max")),),
        Search(None if strategy == _HYPERBAND else strategy, reader.number("RandomSeed")),
        _read_stopping(reader, strategy, dropped),
        count(limits, "MaxNumberOfTrainingJobs") or 0,
        count(limits, "MaxParallelTrainingJobs") or 1,
        end=end,
    )
    if not spec.trials:  # a grid has as many trials as combinations of values
        spec = spec.edited(trials=combinations(spec) or 1 if strategy == "grid" else 1)
    parts = (limits, criteria, progress, objective, *([outer] if is_request else []))
    return ImportedStudy("SageMaker tuning job", spec, layout, (*dropped, *reader.rest(*parts)))


def _read_job(outer: MappingReader) -> tuple[Any, list[str]]:
    definition = outer.values.pop("TrainingJobDefinition", None)
    if not definition:
        return None, []
    fields = dict(MappingReader.of(definition, "TrainingJobDefinition").values)
    fixed = fields.pop("StaticHyperParameters", None)
    job = from_training_job({**fields, **({"HyperParameters": fixed} if fixed else {})})
    return job.layout, [f"TrainingJobDefinition.{path}" for path in job.left_out]


def _strategy(search: Search) -> str:
    chosen = None if search.algorithm in ("gp", "tpe") else search.algorithm
    return next(name for name, algorithm in _STRATEGIES.items() if algorithm == chosen)


def _strategy_config(stopping: Stopping | None) -> dict[str, Json]:
    if not isinstance(stopping, HyperbandStopping):
        return {}
    bounds = present(MinResource=stopping.min_steps, MaxResource=stopping.max_steps)
    return {"HyperbandStrategyConfig": bounds} if bounds else {}


def _read_stopping(
    reader: MappingReader, strategy: str | None, dropped: list[str]
) -> Stopping | None:
    config = reader.below("StrategyConfig")
    bounds = config.below("HyperbandStrategyConfig")
    early = named(reader, "TrainingJobEarlyStoppingType", {"Off": False, _EARLY: True}, False)
    stopping: Stopping | None = MedianStopping() if early else None
    if strategy == _HYPERBAND:
        stopping = HyperbandStopping(bounds.number("MinResource"), bounds.number("MaxResource"))
    dropped += config.rest(bounds)
    return stopping


def _criteria(end: StudyEnd) -> dict[str, Json]:
    trials = end.max_trials_no_progress
    if trials is None:
        return {}
    return {"BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": trials}}


def _ranges(spec: StudySpec) -> dict[str, Json]:
    kinds: dict[str, list[Json]] = {"Integer": [], "Continuous": [], "Categorical": []}
    for parameter in spec.parameters:
        domain = parameter.domain
        fields: dict[str, Json] = {"Name": parameter.name}
        if isinstance(domain, (Discrete, Categorical)):
            listed = [
                value if isinstance(value, str) else written_number(value)
                for value in domain.values
            ]
            kinds["Categorical"].append({**fields, "Values": listed})
            continue
        kind = "Continuous" if isinstance(domain, Double) else "Integer"
        bounds: dict[str, Json] = {"MinValue": repr(domain.low), "MaxValue": repr(domain.high)}
        scaling = next(name for name, scale in _SCALES.items() if scale == parameter.scale)
        kinds[kind].append({**fields, **bounds, "ScalingType": scaling})
    return present(**{f"{kind}ParameterRanges": ranges for kind, ranges in kinds.items()})


def _read_ranges(reader: MappingReader, dropped: list[str]) -> list[Parameter]:
    parameters: list[Parameter] = []
    for value in values(reader, "IntegerParameterRanges", mapping_of):
        low, high = value.number("MinValue") or 0, value.number("MaxValue") or 0
        parameters.append(
            Parameter(value.word("Name") or "", Integer(low, high), _scale(value, dropped))
        )
        dropped += value.rest()
    for value in values(reader, "ContinuousParameterRanges", mapping_of):
        span = Double(real(value, "MinValue", 0.0) or 0.0, real(value, "MaxValue", 0.0) or 0.0)
        parameters.append(Parameter(value.word("Name") or "", span, _scale(value, dropped)))
        dropped += value.rest()
    for value in values(reader, "CategoricalParameterRanges", mapping_of):
        words = Categorical(values(value, "Values", word_of))
        parameters.append(Parameter(value.word("Name") or "", words))
        dropped += value.rest()
    dropped += reader.rest()
    return parameters


def _scale(reader: MappingReader, dropped: list[str]) -> Scale:
    if reader.values.get("ScalingType") == _EARLY:  # whichever the service then takes
        dropped.append(reader.at("ScalingType"))
        del reader.values["ScalingType"]
    scale: Scale = named(reader, "ScalingType", _SCALES, "linear")
    return scale


def _whole_seconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)
