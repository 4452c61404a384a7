"""The request of a study: `CreateHyperParameterTuningJob`, around that of any trial's job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict, cast

from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.names import short_name
from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.formats.mappings import present
from distrain_nb.places.sagemaker import options
from distrain_nb.places.sagemaker.forms.study import tuning_config
from distrain_nb.places.sagemaker.limits import limit_findings
from distrain_nb.places.sagemaker.names import RUN
from distrain_nb.places.sagemaker.options import SageMakerJob
from distrain_nb.tuning.rules.study import objectives
from distrain_nb.tuning.spec import HyperbandStopping, StudySpec
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.metrics import goals

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.plan import SageMakerPlan, SageMakerSpec
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


_OPERATION = "CreateHyperParameterTuningJob"
_SECONDS = 11  # signs that a shell puts behind a name

# Of these the service takes the most epochs that a trial may run for.
_EPOCHS = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")


@dataclass(frozen=True)
class SageMakerStudyPlan:
    """`request` is a `CreateHyperParameterTuningJob` in JSON, with the stand-ins that the request
    of a `trial` has."""

    trial: SageMakerPlan
    request: JsonObject = field(repr=False)
    findings: tuple[Finding, ...]

    def spec(self) -> SageMakerSpec:
        """Return the facts that a service needs later."""
        run = study_name(self.trial.job)
        request = fill_placeholders(self.request, {RUN: run})
        return replace(self.trial.spec(), run=run, study=True, request=dict(request))

    def __str__(self) -> str:
        """Return the request in the command that sends it, for a shell of its own."""
        name = short_name(self.trial.job.name)[: LONGEST_NAME - _SECONDS].strip("-")
        return self.trial.command("create-hyper-parameter-tuning-job", self.request, name)


def plan_study(trial: SageMakerPlan, spec: StudySpec) -> SageMakerStudyPlan:
    """Plan a study; the same study always has the same plan. Raises OptionError."""
    request = tuning_request(trial.job, trial.stored_request(), spec)
    wide = limit_findings(fill_placeholders(request, {RUN: "r" * LONGEST_NAME}), _OPERATION)
    findings = (*_findings(trial, spec), *(item for item in wide if item not in trial.findings))
    return SageMakerStudyPlan(trial, request, findings)


def _findings(trial: SageMakerPlan, spec: StudySpec) -> Iterator[Finding]:
    """Yield what a tuning job can't be, or won't do."""
    job_options = trial.job.options
    if trial.start.delivery is Delivery.FILES:
        message = (
            "a tuning job starts an image by its entry point, and that of --image doesn't start "
            "this program: give the image as --base, and a new one is built on it"
        )
        yield _error("study-image", "image", message)
    if job_options.web_access:
        yield _error("study-access", "web_access", "tuning jobs have no shell in their trials")
    if job_options.check_machines:
        message = "tuning jobs don't test the machines of their trials"
        yield _error("study-machines", "check_machines", message)
    fixed = options.hyperparameters(job_options.hyperparameter)
    for name in dict.fromkeys(p.name for p in spec.parameters if p.name in fixed):
        message = f"--hyperparameter {name}: trials give {name} its values, by --tune"
        yield _error("study-hyperparameter", "hyperparameter", message)
    endless = isinstance(spec.stopping, HyperbandStopping) and spec.stopping.max_steps is None
    if endless and not any(name in fixed for name in _EPOCHS):
        message = (
            "hyperband needs to know how many steps a whole trial has: --stop "
            "hyperband,max-steps=N, or --hyperparameter epochs=N"
        )
        yield _error("study-hyperband", "stop", message)


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.ERROR, where, message)
