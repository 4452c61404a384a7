"""What SageMaker's stand-in refuses of a tuning job, and when Hyperband stops a trial."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from distrain_nb.places.sagemaker.stand_in.tuning_checks import refuse_tuning
from distrain_nb.places.sagemaker.stand_in.tuning_execution import falls_behind
from distrain_nb.rehearsal.failures import ApiError

pytestmark = pytest.mark.brief

REQUEST: dict[str, Any] = {
    "HyperParameterTuningJobName": "study",
    "HyperParameterTuningJobConfig": {
        "Strategy": "Bayesian",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2},
        "ParameterRanges": {
            "ContinuousParameterRanges": [{"Name": "x", "MinValue": "0.0", "MaxValue": "1.0"}],
            "CategoricalParameterRanges": [{"Name": "kind", "Values": ["a", "b"]}],
        },
    },
    "TrainingJobDefinition": {
        "StaticHyperParameters": {"epochs": "9"},
        "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}]},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    },
}
CONFIG, DEFINITION = "HyperParameterTuningJobConfig", "TrainingJobDefinition"
RANGES = (CONFIG, "ParameterRanges", "ContinuousParameterRanges")


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    request = copy.deepcopy(REQUEST)
    place: Any = request
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return request


def test_what_is_sound_is_taken() -> None:
    refuse_tuning(REQUEST)
    refuse_tuning(changed((CONFIG, "Strategy"), "Hyperband"))


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ((DEFINITION,), None, "either TrainingJobDefinition or TrainingJobDefinitions"),
        ((DEFINITION, "ResourceConfig"), None, "needs the ResourceConfig"),
        ((DEFINITION, "AlgorithmSpecification"), {}, "must be one of the metrics"),
        ((CONFIG, "HyperParameterTuningJobObjective"), None, "is required for a custom algorithm"),
        ((CONFIG, "ParameterRanges"), {}, "at least one hyperparameter"),
        ((DEFINITION, "StaticHyperParameters"), {"x": "1"}, "x is given more than once"),
        ((*RANGES, 0, "MaxValue"), "0", "MinValue 0.0 must be less than MaxValue 0.0"),
        ((*RANGES, 0, "MaxValue"), "many", "must be of type Continuous, not '0.0' and 'many'"),
        ((*RANGES, 0, "ScalingType"), "Logarithmic", "values greater than 0 only"),
        ((*RANGES, 0, "ScalingType"), "ReverseLogarithmic", "within 0 <= x < 1.0 only"),
        ((CONFIG, "Strategy"), "Grid", "x: the strategy Grid takes categorical parameters only"),
        ((CONFIG, "ResourceLimits", "MaxNumberOfTrainingJobs"), None, "required for the strategy"),
        ((CONFIG, "StrategyConfig"), {"HyperbandStrategyConfig": {}}, "for the strategy Hyperband"),
    ],
)
def test_what_is_not_is_refused(path: tuple[Any, ...], value: Any, says: str) -> None:
    with pytest.raises(ApiError) as refused:
        refuse_tuning(changed(path, value))
    assert says in refused.value.text


def test_a_grid_has_as_many_trials_as_it_has() -> None:
    request = changed((CONFIG, "Strategy"), "Grid")
    del request[CONFIG]["ParameterRanges"]["ContinuousParameterRanges"]
    with pytest.raises(ApiError, match="MaxNumberOfTrainingJobs 4 must be the grid's 2"):
        refuse_tuning(request)
    del request[CONFIG]["ResourceLimits"]["MaxNumberOfTrainingJobs"]
    refuse_tuning(request)


def test_hyperband_has_to_know_how_long_a_trial_is() -> None:
    request = changed((CONFIG, "Strategy"), "Hyperband")
    del request[DEFINITION]["StaticHyperParameters"]
    with pytest.raises(ApiError, match="MaxResource must be given, or be inferred"):
        refuse_tuning(request)
    request[CONFIG]["StrategyConfig"] = {"HyperbandStrategyConfig": {"MaxResource": 9}}
    refuse_tuning(request)
    request[CONFIG]["TrainingJobEarlyStoppingType"] = "Auto"
    with pytest.raises(ApiError, match="must be Off with the strategy Hyperband"):
        refuse_tuning(request)


def test_hyperband_goes_on_with_the_best_third_at_each_rung() -> None:
    others = [[1.0], [2.0], [3.0], [4.0], [5.0]]
    assert not falls_behind([0.5], others, 1, 9, -1.0)
    assert not falls_behind([1.5], others, 1, 9, -1.0)
    assert falls_behind([2.5], others, 1, 9, -1.0)
    assert not falls_behind([4.5], others, 1, 9, 1.0)
    assert not falls_behind([9.0], [], 1, 9, -1.0)
    assert not falls_behind([9.0, 0.0], others, 2, 9, -1.0)  # before the first rung
    assert not falls_behind([0.5, 9.0, 9.0], [[1.0, 1.0, 1.0]], 1, 9, -1.0)
    assert falls_behind([0.5, 9.0, 9.0], [[1.0, 1.0, 0.1]], 1, 9, -1.0)
    assert falls_behind([0.0] * 9, [], 1, 9, -1.0)
