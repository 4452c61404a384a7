"""The API's operations: training jobs are created, looked at, listed and stopped."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distrain_nb.places.sagemaker.stand_in.attempt import TrainingJobContext
from distrain_nb.places.sagemaker.stand_in.checks import refuse
from distrain_nb.places.sagemaker.stand_in.execution import TrainingJobExecution
from distrain_nb.places.sagemaker.stand_in.hosts import hosts
from distrain_nb.places.sagemaker.stand_in.instances import with_available_instances
from distrain_nb.places.sagemaker.stand_in.refusals import (
    ACCOUNT,
    denied,
    invalid,
    not_found,
    quota_exceeded,
    role_not_assumed,
    taken,
)
from distrain_nb.places.sagemaker.stand_in.training_job import TrainingJob
from distrain_nb.rehearsal.failures import ApiError
from distrain_nb.rehearsal.paging import page_at

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
        self._executions: dict[str, TrainingJobExecution] = {}
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
        self.refuse(region, request)
        self.start(region, request)
        self.lose_answer()
        return {"TrainingJobArn": arn}

    def refuse(self, region: str, request: Mapping[str, Any]) -> None:
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

    def start(self, region: str, request: Mapping[str, Any]) -> TrainingJobExecution:
        """Start a job that has been checked. Raises ApiError for a name that is taken."""
        arn = _arn(region, request["TrainingJobName"])
        with self._lock:
            if arn in self._executions:
                raise taken(arn)
            execution = TrainingJobExecution(TrainingJob.of(arn, request), self._context)
            self._executions[arn] = execution
        execution.start()
        return execution

    def lose_answer(self) -> None:
        """Raise ApiError where the answer to a request is to be lost."""
        if next(self._lost) < self._context.faults.lost:
            raise ApiError("ServiceUnavailable", "The service is currently unavailable.", 503)

    def describe(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the job as it stands."""
        arn = _arn(region, request["TrainingJobName"])
        self.permit("DescribeTrainingJob", arn)
        return self._find(arn).job.record.description()

    def stop(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask a job to end."""
        arn = _arn(region, request["TrainingJobName"])
        self.permit("StopTrainingJob", arn)
        status = self._find(arn).cancel()
        if status != "InProgress":
            raise invalid(
                f"The request was rejected because the training job is in status {status}."
            )
        return {}

    def list(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of the jobs, the newest first unless asked otherwise."""
        self.permit("ListTrainingJobs", _arn(region, "*"))
        described = (
            execution.job.record.description()
            for arn, execution in list(self._executions.items())
            if arn.startswith(_arn(region, ""))
            and request.get("NameContains", "") in execution.name
        )
        listed = [{name: x[name] for name in _SUMMARY if name in x} for x in described]
        return page_of("TrainingJobSummaries", listed, "TrainingJobStatus", request)

    def add_tags(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Put tags on a job."""
        self.permit("AddTags", request["ResourceArn"])
        tags = self._find(request["ResourceArn"]).job.tags
        tags |= {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        return {"Tags": _pairs(tags)}

    def list_tags(self, region: str, request: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        """Return a job's tags."""
        self.permit("ListTags", request["ResourceArn"])
        return {"Tags": _pairs(self._find(request["ResourceArn"]).job.tags)}

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

    def _find(self, arn: str) -> TrainingJobExecution:
        if arn not in self._executions:
            raise not_found()
        return self._executions[arn]


def page_of(
    name: str, rows: Sequence[Mapping[str, Any]], status: str, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a page of the rows, which are in rising order, with the status that a request names;
    `status` is their field for it."""
    chosen = [row for row in rows if request.get("StatusEquals") in (None, row[status])]
    ordered = chosen if request.get("SortOrder") == "Ascending" else chosen[::-1]
    listed, token = page_at(ordered, request.get("NextToken", ""), request.get("MaxResults", _PAGE))
    return {name: listed, **({"NextToken": token} if token else {})}


def _arn(region: str, name: str) -> str:
    return f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
