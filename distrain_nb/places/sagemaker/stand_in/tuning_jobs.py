"""The operations of tuning jobs: create, describe, list and stop."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from distrain_nb.places.sagemaker.stand_in.jobs import TrainingJobService, page_of
from distrain_nb.places.sagemaker.stand_in.refusals import (
    ACCOUNT,
    invalid,
    no_tuning_job,
    tuning_job_taken,
)
from distrain_nb.places.sagemaker.stand_in.tuning_checks import definition_of, refuse_tuning
from distrain_nb.places.sagemaker.stand_in.tuning_execution import TuningJob, training_job
from distrain_nb.tuning.engine import Outcome
from distrain_nb.tuning.spec import Value

_COUNTERS = ("Completed", "InProgress", "RetryableError", "NonRetryableError", "Stopped")
_COUNTED = {"Failed": "NonRetryableError", "Stopping": "InProgress"}
_ORDER: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "Name": lambda summary: summary["TrainingJobName"],
    "CreationTime": lambda summary: summary["CreationTime"],
    "Status": lambda summary: summary["TrainingJobStatus"],
    "FinalObjectiveMetricValue": lambda summary: summary.get(
        "FinalHyperParameterTuningJobObjectiveMetric", {}
    ).get("Value", float("-inf")),
}


class TuningJobService:
    """Every tuning job of a rehearsal, whose trials are training jobs of `jobs`."""

    def __init__(self, jobs: TrainingJobService) -> None:
        self._jobs = jobs
        self._tuning_jobs: dict[str, TuningJob] = {}
        self._lock = threading.Lock()

    def operations(self) -> dict[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]]:
        """Return the operations by name.

        Each takes a region and a checked request. It returns an answer or raises ApiError.
        """
        return {
            "CreateHyperParameterTuningJob": self.create,
            "DescribeHyperParameterTuningJob": self.describe,
            "ListHyperParameterTuningJobs": self.list,
            "ListTrainingJobsForHyperParameterTuningJob": self.trials,
            "StopHyperParameterTuningJob": self.stop,
        }

    def create(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Accept a tuning job and start it."""
        arn = _arn(region, request["HyperParameterTuningJobName"])
        self._jobs.permit("CreateHyperParameterTuningJob", arn)
        refuse_tuning(request)
        definition = definition_of(request)
        self._jobs.refuse(region, training_job(definition, "checked", arn, {}, ""))
        earlier = list(self._warm_start(region, request))
        with self._lock:
            if arn in self._tuning_jobs:
                raise tuning_job_taken(arn)
            self._tuning_jobs[arn] = job = TuningJob(arn, request, self._jobs, earlier)
        job.start()
        self._jobs.lose_answer()
        return {"HyperParameterTuningJobArn": arn}

    def describe(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the present state of a tuning job."""
        job = self._find("DescribeHyperParameterTuningJob", region, request)
        fields = {name: value for name, value in job.request.items() if name != "Tags"}
        fields |= _shared_fields(job)
        best = job.best()
        if best is not None:
            fields["BestTrainingJob"] = best.summary(job.name)
        return {**fields, "FailureReason": job.reason} if job.reason else fields

    def list(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of the tuning jobs, the newest first unless asked otherwise."""
        self._jobs.permit("ListHyperParameterTuningJobs", _arn(region, "*"))
        with self._lock:
            of_region = [
                job for arn, job in self._tuning_jobs.items() if arn.startswith(_arn(region, ""))
            ]
        listed = []
        for job in of_region:
            config = job.request["HyperParameterTuningJobConfig"]
            if request.get("NameContains", "") in job.name:
                limits = {
                    "Strategy": config["Strategy"],
                    "ResourceLimits": config["ResourceLimits"],
                }
                listed.append(
                    {"HyperParameterTuningJobName": job.name, **limits, **_shared_fields(job)}
                )
        status = "HyperParameterTuningJobStatus"
        return page_of("HyperParameterTuningJobSummaries", listed, status, request)

    def trials(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of a tuning job's trials, the newest first unless asked otherwise."""
        job = self._find("ListTrainingJobsForHyperParameterTuningJob", region, request)
        listed = [trial.summary(job.name) for trial in list(job.trials.values())]
        listed.sort(key=_ORDER[request.get("SortBy", "CreationTime")])
        return page_of("TrainingJobSummaries", listed, "TrainingJobStatus", request)

    def stop(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask a tuning job and its trials to end."""
        status = self._find("StopHyperParameterTuningJob", region, request).cancel()
        if status != "InProgress":
            raise invalid(
                "The request was rejected because the hyperparameter tuning job is in status "
                f"{status}."
            )
        return {}

    def close(self) -> None:
        """Start nothing more."""
        for job in self._tuning_jobs.values():
            job.abandon()

    def _find(self, operation: str, region: str, request: Mapping[str, Any]) -> TuningJob:
        arn = _arn(region, request["HyperParameterTuningJobName"])
        self._jobs.permit(operation, arn)
        with self._lock:
            if arn not in self._tuning_jobs:
                raise no_tuning_job(request["HyperParameterTuningJobName"])
            return self._tuning_jobs[arn]

    def _warm_start(
        self, region: str, request: Mapping[str, Any]
    ) -> Iterator[tuple[Mapping[str, Value], Outcome]]:
        """Yield the trials of the jobs that a warm start names, if their values lie in its
        ranges."""
        objective = request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]
        for parent in request.get("WarmStartConfig", {}).get("ParentHyperParameterTuningJobs", ()):
            job = self._find("DescribeHyperParameterTuningJob", region, parent)
            if not job.ended:
                raise invalid(f"The parent tuning job {job.name} is in status {job.status}.")
            if job.objective != objective:
                raise invalid(f"The parent tuning job {job.name} has another objective metric.")
            ranges = request["HyperParameterTuningJobConfig"].get("ParameterRanges")
            if job.request["HyperParameterTuningJobConfig"].get("ParameterRanges") == ranges:
                yield from ((trial.values, job.outcome(trial)) for trial in job.trials.values())


def _arn(region: str, name: str) -> str:
    """Return the ARN of a tuning job, whose name is not case sensitive."""
    return f"arn:aws:sagemaker:{region}:{ACCOUNT}:hyper-parameter-tuning-job/{name.lower()}"


def _shared_fields(job: TuningJob) -> dict[str, Any]:
    """Return the fields that a list and a description of a tuning job share."""
    fields = {
        "HyperParameterTuningJobArn": job.arn,
        "HyperParameterTuningJobStatus": job.status,
        "CreationTime": job.created,
        "LastModifiedTime": job.changed,
        **_counts(job),
    }
    return {**fields, "HyperParameterTuningEndTime": job.ended} if job.ended else fields


def _counts(job: TuningJob) -> dict[str, dict[str, int]]:
    summaries = [trial.summary(job.name) for trial in list(job.trials.values())]
    by_status = Counter(summary["TrainingJobStatus"] for summary in summaries)
    statuses: Counter[str] = Counter()
    for status, count in by_status.items():
        statuses[_COUNTED.get(status, status)] += count
    objectives = Counter(summary["ObjectiveStatus"] for summary in summaries)
    return {
        "TrainingJobStatusCounters": {name: statuses[name] for name in _COUNTERS},
        "ObjectiveStatusCounters": {n: objectives[n] for n in ("Succeeded", "Pending", "Failed")},
    }
