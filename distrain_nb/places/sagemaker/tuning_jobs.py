"""Tuning jobs: created once, observed with their trials, stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from botocore.exceptions import ClientError

from distrain_nb.backends.remote.service import Gone, Observed
from distrain_nb.backends.tuning import ServiceStudy, ServiceTrial
from distrain_nb.errors import OptionError
from distrain_nb.places.sagemaker.client import code_of, plain_words
from distrain_nb.places.sagemaker.forms.study import from_tuning_config
from distrain_nb.places.sagemaker.jobs import INVALID, created, is_missing, readable, refuse_deleted
from distrain_nb.places.sagemaker.request import RequestParts
from distrain_nb.places.sagemaker.tuning_request import read
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.status import State

if TYPE_CHECKING:
    from botocore.client import BaseClient

    from distrain_nb.backends.tuning import TrialWord

_NUMBER = re.compile(r"-(\d+)-[^-]+$")  # in the name of a trial's job
_STATES: dict[str, TrialWord] = {
    "InProgress": "running",
    "Stopping": "stopping",
    "Completed": "succeeded",
    "Failed": "failed",
    "Stopped": "stopped",
    "Deleting": "stopped",
}
_NO_VALUE = "SageMaker found no value of the goal in its log"


class TuningDescription(TypedDict, total=False):
    """The fields that are read of an answer to `DescribeHyperParameterTuningJob`."""

    HyperParameterTuningJobName: str
    HyperParameterTuningJobStatus: str
    HyperParameterTuningJobConfig: JsonObject
    TrainingJobDefinitions: list[RequestParts]
    CreationTime: datetime
    TrainingJobDefinition: RequestParts
    TrainingJobStatusCounters: dict[str, int]
    FailureReason: str


class Objective(TypedDict):
    """The last value of the goal."""

    MetricName: str
    Value: float


class Summary(TypedDict, total=False):
    """The fields that are read of a trial in `ListTrainingJobsForHyperParameterTuningJob`."""

    TrainingJobName: str
    TrainingJobStatus: str
    CreationTime: datetime
    TrainingEndTime: datetime
    TunedHyperParameters: dict[str, str]
    FinalHyperParameterTuningJobObjectiveMetric: Objective
    ObjectiveStatus: str
    FailureReason: str


@dataclass(frozen=True)
class HyperParameterTuningJobs:
    """The tuning jobs of an account in a region; `client` is SageMaker's."""

    client: BaseClient = field(repr=False)

    def create(self, request: JsonObject) -> str:
        """Send a request, as `TrainingJobs.create` does."""
        name = read(request)["HyperParameterTuningJobName"]
        return created(
            lambda: self.client.create_hyper_parameter_tuning_job(**request),
            name,
            lambda: self.find(request),
        )

    def find(self, request: JsonObject) -> str:
        """Return our tuning job of the request's name; empty if there is none. Raises
        DistrainError."""
        asked = read(request)
        name = asked["HyperParameterTuningJobName"]
        with plain_words("look for the tuning job"):
            try:
                answer = self._describe(name)
            except ClientError as error:
                if is_missing(error):
                    return ""
                raise
        there = answer["TrainingJobDefinition"].get("Environment")
        return name if there == asked["TrainingJobDefinition"]["Environment"] else ""

    def observe(self, job: str) -> Observed:
        """Return the present state of the tuning job.

        Raises DistrainError, or Gone if the service has no such job.
        """
        with plain_words("ask how the tuning job is doing"):
            try:
                return _observed(self._describe(job))
            except ClientError as error:
                if is_missing(error):
                    raise Gone("SageMaker doesn't have the tuning job any more") from error
                raise

    def study(self, job: str) -> ServiceStudy:
        """Return the spec of the tuning job.

        Raises DistrainError, or OptionError if its trials have several definitions.
        """
        with plain_words("ask what the tuning job tries"):
            answer = self._describe(job)
        if "TrainingJobDefinitions" in answer:
            raise OptionError(
                f"the tuning job {job} has several training job definitions: it can't be followed "
                "as a study, its training jobs can as runs, one by one"
            )
        config = {"HyperParameterTuningJobConfig": answer["HyperParameterTuningJobConfig"]}
        name = answer["HyperParameterTuningJobName"]
        return ServiceStudy(name, _seconds(answer["CreationTime"]), from_tuning_config(config).spec)

    def trials(self, job: str) -> list[ServiceTrial]:
        """Return the trials of the tuning job, in order of their numbers. Raises DistrainError."""
        with plain_words("ask for the trials"):
            paginator = self.client.get_paginator(
                "list_training_jobs_for_hyper_parameter_tuning_job"
            )
            asked = {"SortBy": "CreationTime", "SortOrder": "Ascending"}
            pages = paginator.paginate(HyperParameterTuningJobName=job, **asked)
            summaries = [item for page in pages for item in page["TrainingJobSummaries"]]
        trials = [_trial(item, number) for number, item in enumerate(summaries, 1)]
        return sorted(trials, key=lambda trial: trial.number)

    def stop(self, job: str) -> None:
        """Stop the tuning job and its trials. One that has ended stays as it is. Raises
        DistrainError."""
        with plain_words("stop the tuning job"):
            try:
                self.client.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=job)
            except ClientError as error:
                if code_of(error) != INVALID:
                    raise

    def _describe(self, name: str) -> TuningDescription:
        tuning_description: TuningDescription = self.client.describe_hyper_parameter_tuning_job(
            HyperParameterTuningJobName=name
        )
        return tuning_description


def _observed(answer: TuningDescription) -> Observed:
    """Return the state that an answer describes. Raises Gone as `refuse_deleted` does."""
    status = answer["HyperParameterTuningJobStatus"]
    refuse_deleted(status, "the tuning job")
    if status == "Completed":
        return Observed(State.SUCCEEDED, "succeeded")
    if status == "Stopped":
        return Observed(State.CANCELLED, "stopped")
    if status == "Failed":
        reason = readable(answer.get("FailureReason", ""))
        return Observed(State.FAILED, "failed", reason or "SageMaker: the tuning job failed")
    if status == "Stopping":
        return Observed(State.STOPPING, "stopping")
    counts = answer["TrainingJobStatusCounters"]
    begun = sum(counts.values())
    return Observed(State.RUNNING if begun else State.STARTING, "running" if begun else "starting")


def _trial(summary: Summary, place: int) -> ServiceTrial:
    match = _NUMBER.search(summary["TrainingJobName"])
    final = summary.get("FinalHyperParameterTuningJobObjectiveMetric")
    state, why = _ending(summary)
    return ServiceTrial(
        int(match[1]) if match else place,
        dict(summary.get("TunedHyperParameters", {})),
        state,
        summary["TrainingJobName"],
        {final["MetricName"]: float(final["Value"])} if final else {},
        why=why,
        begin=_seconds(summary.get("CreationTime")),
        end=_seconds(summary.get("TrainingEndTime")),
    )


def _ending(summary: Summary) -> tuple[TrialWord, str]:
    """Return a trial's state, and the reason if it failed or was stopped."""
    status = summary["TrainingJobStatus"]
    state = _STATES.get(status, "running")
    if state == "failed":
        return state, readable(summary.get("FailureReason", "")).partition("\n")[0]
    valued = "FinalHyperParameterTuningJobObjectiveMetric" in summary
    if state == "stopped":
        why = "is being deleted" if status == "Deleting" else "was stopped"
        return ("stopped" if valued else "cancelled"), f"its training job {why}"
    if state == "succeeded" and not valued:
        pending = summary.get("ObjectiveStatus") == "Pending"
        return ("running", "") if pending else ("failed", _NO_VALUE)
    return state, ""


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time else 0.0
