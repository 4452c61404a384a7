"""An accepted training job: its request, and what `DescribeTrainingJob` says of it."""

from __future__ import annotations

import copy
import logging
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from distrain_nb.places.sagemaker.stand_in.streams import LogStream

_log = logging.getLogger(__name__)

# The ends of a job, by their secondary status.
_ENDS = {
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


class JobRecord:
    """The description of a job. Safe to use from several threads."""

    def __init__(self, arn: str, request: Mapping[str, Any]) -> None:
        now = time.time()
        self._description = {name: value for name, value in request.items() if name != "Tags"}
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
            if secondary in _ENDS:
                step["EndTime"] = now
                self._description["TrainingJobStatus"] = _ENDS[secondary]
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


@dataclass(frozen=True)
class TrainingJob:
    """An accepted job: its ARN, its request, what the service says of it, and its tags."""

    arn: str
    request: Mapping[str, Any]
    record: JobRecord
    tags: dict[str, str]

    @classmethod
    def of(cls, arn: str, request: Mapping[str, Any]) -> TrainingJob:
        """Accept a request."""
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}
        return cls(arn, request, JobRecord(arn, request), tags)

    @property
    def name(self) -> str:
        return str(self.request["TrainingJobName"])

    @property
    def region(self) -> str:
        return self.arn.split(":")[3]

    @property
    def notes(self) -> LogStream:
        """The stream of what the rehearsal itself says."""
        return LogStream(self.region, f"{self.name}/rehearsal")
