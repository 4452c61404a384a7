"""The request of a study: `CreateHyperParameterTuningJob`, around that of any trial's job."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, TypedDict, cast

from distrain_nb.backends.remote.names import short_name
from distrain_nb.layout.formats.mappings import present
from distrain_nb.places.sagemaker import options
from distrain_nb.places.sagemaker.forms.study import tuning_config
from distrain_nb.places.sagemaker.names import RUN
from distrain_nb.places.sagemaker.options import SageMakerJob
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.metrics import goals

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.request import RequestParts

# The service puts a number and eight signs behind a tuning job's name, and calls trials' jobs so.
LONGEST_NAME = 32

# What a definition has in the same words as the request of a training job.
_SAME = (
    "RoleArn",
    "InputDataConfig",
    "VpcConfig",
    "ResourceConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "RetryStrategy",
)
_NUMBER = r"([-+]?[0-9][-+.0-9e]*)"


class TuningParts(TypedDict):
    """What is read again of a `CreateHyperParameterTuningJob`."""

    HyperParameterTuningJobName: str
    TrainingJobDefinition: RequestParts


def read(request: JsonObject) -> TuningParts:
    """Return the parts of a request that are read again."""
    return cast("TuningParts", request)


def study_name(job: SageMakerJob) -> str:
    """Return a name that no other study's tuning job has."""
    return f"{short_name(job.name)[: LONGEST_NAME - 1 - len(job.nonce)].strip('-')}-{job.nonce}"


def tuning_request(job: SageMakerJob, request: JsonObject, spec: StudySpec) -> dict[str, Json]:
    """Return the whole request of a study, whose trials' job is `job` with that `request`.

    Raises OptionError for a study without a goal.
    """
    return present(
        HyperParameterTuningJobName=RUN,
        HyperParameterTuningJobConfig=tuning_config(spec),
        TrainingJobDefinition=_definition(job, request, spec),
        WarmStartConfig=_warm_start(job),
        Tags=request["Tags"],
        Autotune={"Mode": "Enabled"} if job.options.autotune else None,
    )


def _definition(job: SageMakerJob, request: JsonObject, spec: StudySpec) -> dict[str, Json]:
    """Return the definition of any trial's job. It has no event files of its own, and no command
    for its image: their folder is in that of checkpoints, and the image has an entry point."""
    asked = cast("dict[str, dict[str, Json]]", request)
    algorithm, output = asked["AlgorithmSpecification"], asked["OutputDataConfig"]
    checkpoints = f"{asked['CheckpointConfig']['S3Uri']}".rstrip("/")
    return present(
        StaticHyperParameters=request.get("HyperParameters"),
        AlgorithmSpecification=present(
            TrainingImage=algorithm["TrainingImage"],
            TrainingInputMode=algorithm["TrainingInputMode"],
            MetricDefinitions=_metrics(job, spec),
        ),
        OutputDataConfig={**output, "S3OutputPath": f"{output['S3OutputPath']}/{RUN}"},
        CheckpointConfig={**asked["CheckpointConfig"], "S3Uri": f"{checkpoints}/"},
        Environment=_environment(job, asked["Environment"], spec),
        **{name: request.get(name) for name in _SAME},
    )


def goal_of(spec: StudySpec) -> str:
    """Return the metric that the service optimizes."""
    return objectives(spec)[0].metric


def _metrics(job: SageMakerJob, spec: StudySpec) -> list[Json]:
    """Return the expressions for the log: a goal without a definition is in the line that
    `log_metrics` prints of it."""
    goal, expressions = goal_of(spec), options.metrics(job.options.metric)
    line = rf"\[rank 0\] step -?[0-9]+  {re.escape(goal)} {_NUMBER}"
    return [{"Name": name, "Regex": regex} for name, regex in {goal: line, **expressions}.items()]


def _environment(
    job: SageMakerJob, environment: dict[str, Json], spec: StudySpec
) -> dict[str, Json]:
    variables = {n: value for n, value in environment.items() if n != "DISTRAIN_TENSORBOARD"}
    variables[goals.TUNED_VARIABLE] = ",".join(dict.fromkeys(p.name for p in spec.parameters))
    if goal_of(spec) not in options.metrics(job.options.metric):
        variables[goals.VARIABLE] = json.dumps([goal_of(spec)])
    return variables


def _warm_start(job: SageMakerJob) -> dict[str, Json]:
    names, transfers = options.warm_start(job.options.warm_start)
    if not names:
        return {}
    return {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": n} for n in names],
        "WarmStartType": "TransferLearning" if transfers else "IdenticalDataAndAlgorithm",
    }
