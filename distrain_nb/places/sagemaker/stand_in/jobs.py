"""The API's operations: training jobs are created, looked at, listed and stopped."""

from __future__ import annotations

import copy
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distrain_nb.places.sagemaker.stand_in.attempt import TrainingJob, TrainingJobContext
from distrain_nb.places.sagemaker.stand_in.checks import refuse, with_available_instances
from distrain_nb.places.sagemaker.stand_in.execution import TrainingJobExecution
from distrain_nb.places.sagemaker.stand_in.hosts import hosts
from distrain_nb.places.sagemaker.stand_in.protocol import (
    ACCOUNT,
    denied,
    invalid,
    not_found,
    quota_exceeded,
    role_not_assumed,
    taken,
)
from distrain_nb.rehearsal.faults import ApiError

_log = logging.getLogger(__name__)

# The ends of a job, by their secondary status.
ENDS = {
    "Completed": "Completed",
    "Failed": "Failed",
    "Stopped": "Stopped",
    "MaxRuntimeExceeded": "Stopped",
    "MaxWaitTimeExceeded": "Stopped",
}

_MESSAGES = {
    "Starting": "Starting the training job",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Uploading": "Uploading generated training model",
    "Interrupted": "The job was stopped because its spot instances were interrupted",
    "Restarting": "Restarting the training job on new instances",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Resource released due to exceeding the maximum run time",
    "MaxWaitTimeExceeded": "Resource released due to exceeding the maximum wait time",
}
_MAX_REASON = 1024
_HIDDEN = ("Tags",)


class JobRecord:
    """A job as `DescribeTrainingJob` gives it. Safe to use from several threads."""

    def __init__(self, arn: str, request: Mapping[str, Any]) -> None:
        now = time.time()
        self._description = {name: value for name, value in request.items() if name not in _HIDDEN}
        self._description |= {
            "TrainingJobArn": arn,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Starting",
            "CreationTime": now,
            "LastModifiedTime": now,
            "SecondaryStatusTransitions": [],
        }
        self._metrics: dict[str, dict[str, Any]] = {}
        self._values: dict[str, list[float]] = {}
        self._patterns = [
            (metric["Name"], re.compile(metric["Regex"]))
            for metric in request["AlgorithmSpecification"].get("MetricDefinitions", ())
        ]
        self._lock = threading.RLock()
        self.enter("Starting")

    def description(self) -> dict[str, Any]:
        """Return the answer to DescribeTrainingJob, with times in seconds since the epoch."""
        with self._lock:
            fields = copy.deepcopy(self._description)
            if self._metrics:
                fields["FinalMetricDataList"] = list(self._metrics.values())
            return fields

    def values(self, metric: str) -> list[float]:
        """Return all that the log has said of a metric so far."""
        with self._lock:
            return list(self._values.get(metric, ()))

    def stop(self) -> str:
        """Enter `Stopping` if the job is in progress. Returns the status that it had."""
        with self._lock:
            status = str(self._description["TrainingJobStatus"])
            if status == "InProgress":
                self.enter("Stopping")
            return status

    def enter(self, secondary: str, message: str = "") -> None:
        """Enter the next phase, with the service's usual words if there is no `message`."""
        now = time.time()
        _log.info("%s: %s", self._description["TrainingJobArn"], message or _MESSAGES[secondary])
        with self._lock:
            for before in self._description["SecondaryStatusTransitions"][-1:]:
                before.setdefault("EndTime", now)
            step = {
                "Status": secondary,
                "StartTime": now,
                "StatusMessage": message or _MESSAGES[secondary],
            }
            if secondary in ENDS:
                step["EndTime"] = now
                self._description["TrainingJobStatus"] = ENDS[secondary]
                self._end(now)
            elif secondary == "Stopping":
                self._description["TrainingJobStatus"] = "Stopping"
            elif secondary in ("Downloading", "Training"):
                self._description.setdefault("TrainingStartTime", now)
            self._description["SecondaryStatusTransitions"].append(step)
            self._description["SecondaryStatus"] = secondary
            self._description["LastModifiedTime"] = now

    def _end(self, now: float) -> None:
        seconds = round(now - self._description.setdefault("TrainingStartTime", now))
        self._description |= {
            "TrainingEndTime": now,
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": seconds,
        }

    def fail(self, reason: str) -> None:
        """End the job with a failure."""
        with self._lock:
            self._description["FailureReason"] = reason[:_MAX_REASON]
        _log.info("%s: %s", self._description["TrainingJobArn"], reason)
        self.enter("Failed")

    def select(self, instance: str, count: int) -> None:
        """Say which of the instance types to choose from the job has."""
        selected = {"SelectedInstanceType": instance, "SelectedInstanceCount": count}
        with self._lock:
            resources = self._description["ResourceConfig"]
            self._description["ResourceConfig"] = {**resources, **selected}

    def keep_model(self, uri: str) -> None:
        """Say where the model is."""
        with self._lock:
            self._description["ModelArtifacts"] = {"S3ModelArtifacts": uri}

    def read(self, line: str) -> None:
        """Take the job's metrics from a line of its log."""
        for name, pattern in self._patterns:
            match = pattern.search(line)
            try:
                value = float(match[1]) if match else None
            except (ValueError, IndexError):
                continue
            if value is not None:
                point = {"MetricName": name, "Value": value, "Timestamp": time.time()}
                with self._lock:
                    self._metrics[name] = point
                    self._values.setdefault(name, []).append(value)


_PAGE = 10
_SUMMARY = (
    "TrainingJobName",
    "TrainingJobArn",
    "CreationTime",
    "TrainingEndTime",
    "LastModifiedTime",
    "TrainingJobStatus",
    "SecondaryStatus",
)


class TrainingJobService:
    """Every training job of a rehearsal."""

    def __init__(self, context: TrainingJobContext) -> None:
        self._context = context
        self._permission = context.faults.permission
        self._lost = itertools.count()
        self._jobs: dict[str, TrainingJob] = {}
        self._executions: dict[str, TrainingJobExecution] = {}
        self._tags: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def operations(self) -> dict[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]]:
        """Return the operations by name: a region and a checked request make an answer, or raise
        ApiError."""
        return {
            "CreateTrainingJob": self.create,
            "DescribeTrainingJob": self.describe,
            "ListTrainingJobs": self.list,
            "StopTrainingJob": self.stop,
            "AddTags": self.add_tags,
            "ListTags": self.list_tags,
        }

    def create(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take a job and start it."""
        arn = _arn(region, request["TrainingJobName"])
        self.permit("CreateTrainingJob", arn)
        self.check(region, request)
        self.start(region, request)
        self.answer()
        return {"TrainingJobArn": arn}

    def check(self, region: str, request: Mapping[str, Any]) -> None:
        """Raise ApiError for a job that the service would not take."""
        role = request["RoleArn"]
        if self._permission == "iam:PassRole":
            raise denied("iam:PassRole", role)
        if self._permission == "sts:AssumeRole":
            raise role_not_assumed(role)
        refuse(request, region, self._context.store)
        if self._context.faults.quota:
            raise quota_exceeded(
                self._context.faults.quota, len(hosts(with_available_instances(request)))
            )

    def start(self, region: str, request: Mapping[str, Any]) -> TrainingJob:
        """Start a job that has been checked. Raises ApiError for a name that is taken."""
        arn = _arn(region, request["TrainingJobName"])
        with self._lock:
            if arn in self._jobs:
                raise taken(arn)
            job = TrainingJob(arn, request, JobRecord(arn, request))
            self._jobs[arn] = job
            self._tags[arn] = {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}
            self._executions[arn] = TrainingJobExecution(job, self._context)
        self._executions[arn].start()
        return job

    def answer(self) -> None:
        """Raise ApiError where the answer to a request is to be lost."""
        if next(self._lost) < self._context.faults.lost:
            raise ApiError("ServiceUnavailable", "The service is currently unavailable.", 503)

    def describe(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the job as it stands."""
        arn = _arn(region, request["TrainingJobName"])
        self.permit("DescribeTrainingJob", arn)
        return self._find(arn).record.description()

    def stop(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask a job to end."""
        arn = _arn(region, request["TrainingJobName"])
        self.permit("StopTrainingJob", arn)
        status = self.end(self._find(arn))
        if status != "InProgress":
            raise invalid(
                f"The request was rejected because the training job is in status {status}."
            )
        return {}

    def end(self, job: TrainingJob) -> str:
        """Have a job stopped if it is in progress. Returns the status that it had."""
        status = job.record.stop()
        if status == "InProgress":
            self._executions[job.arn].cancelled.set()
        return status

    def list(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of the jobs, the newest first unless asked otherwise."""
        self.permit("ListTrainingJobs", _arn(region, "*"))
        with self._lock:
            of_region = [job for arn, job in self._jobs.items() if arn.startswith(_arn(region, ""))]
        described = (
            job.record.description()
            for job in of_region
            if request.get("NameContains", "") in job.name
        )
        listed = [{name: x[name] for name in _SUMMARY if name in x} for x in described]
        return page_of("TrainingJobSummaries", listed, "TrainingJobStatus", request)

    def add_tags(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Put tags on a job."""
        self.permit("AddTags", request["ResourceArn"])
        self._find(request["ResourceArn"])
        tags = self._tags[request["ResourceArn"]]
        tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        return {"Tags": _pairs(tags)}

    def list_tags(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return a job's tags."""
        self.permit("ListTags", request["ResourceArn"])
        self._find(request["ResourceArn"])
        return {"Tags": _pairs(self._tags[request["ResourceArn"]])}

    def close(self) -> None:
        """Stop what runs, and wait for it."""
        for execution in self._executions.values():
            execution.abandon()
        for execution in self._executions.values():
            execution.join()

    def permit(self, operation: str, resource: str) -> None:
        """Raise ApiError for an operation that the caller may not ask for."""
        if self._permission == f"sagemaker:{operation}":
            raise denied(self._permission, resource)

    def _find(self, arn: str) -> TrainingJob:
        with self._lock:
            if arn not in self._jobs:
                raise not_found()
            return self._jobs[arn]


def page_of(
    name: str, rows: Sequence[Mapping[str, Any]], status: str, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a page of the rows, which are in rising order, with the status that a request names;
    `status` is their field for it."""
    chosen = [row for row in rows if request.get("StatusEquals") in (None, row[status])]
    ordered = chosen if request.get("SortOrder") == "Ascending" else chosen[::-1]
    start = int(request.get("NextToken", 0))
    end = start + request.get("MaxResults", _PAGE)
    more = {"NextToken": str(end)} if end < len(ordered) else {}
    return {name: ordered[start:end], **more}


def _arn(region: str, name: str) -> str:
    return f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
