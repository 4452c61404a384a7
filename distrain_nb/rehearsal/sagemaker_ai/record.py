"""What is told of a training job: the request it was made by, and how it stands."""

from __future__ import annotations

import copy
import re
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_NOT_TOLD = ("Tags",)


class Record:
    """A job as `DescribeTrainingJob` gives it. Safe to use from several threads."""

    def __init__(self, arn: str, request: Mapping[str, Any]) -> None:
        now = time.time()
        self._told = {name: value for name, value in request.items() if name not in _NOT_TOLD}
        self._told |= {
            "TrainingJobArn": arn,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Starting",
            "CreationTime": now,
            "LastModifiedTime": now,
            "SecondaryStatusTransitions": [],
        }
        self._metrics: dict[str, dict[str, Any]] = {}
        self._patterns = [
            (one["Name"], re.compile(one["Regex"]))
            for one in request["AlgorithmSpecification"].get("MetricDefinitions", ())
        ]
        self._lock = threading.RLock()
        self.enter("Starting")

    def told(self) -> dict[str, Any]:
        """The whole answer, times in seconds since the epoch."""
        with self._lock:
            told = copy.deepcopy(self._told)
            if self._metrics:
                told["FinalMetricDataList"] = list(self._metrics.values())
            return told

    def stop(self) -> str:
        """Come to the job's stopping if it is in progress; gives the status that it had."""
        with self._lock:
            status = str(self._told["TrainingJobStatus"])
            if status == "InProgress":
                self.enter("Stopping")
            return status

    def enter(self, secondary: str, message: str = "") -> None:
        """Come to the next phase; without a `message` in what the service says of it."""
        now = time.time()
        with self._lock:
            for before in self._told["SecondaryStatusTransitions"][-1:]:
                before.setdefault("EndTime", now)
            step = {
                "Status": secondary,
                "StartTime": now,
                "StatusMessage": message or _MESSAGES[secondary],
            }
            if secondary in ENDS:
                step["EndTime"] = now
                self._told["TrainingJobStatus"] = ENDS[secondary]
                self._end(now)
            elif secondary == "Stopping":
                self._told["TrainingJobStatus"] = "Stopping"
            elif secondary in ("Downloading", "Training"):
                self._told.setdefault("TrainingStartTime", now)
            self._told["SecondaryStatusTransitions"].append(step)
            self._told["SecondaryStatus"] = secondary
            self._told["LastModifiedTime"] = now

    def _end(self, now: float) -> None:
        seconds = round(now - self._told.setdefault("TrainingStartTime", now))
        self._told |= {
            "TrainingEndTime": now,
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": seconds,
        }

    def fail(self, reason: str) -> None:
        """End the job with a failure."""
        with self._lock:
            self._told["FailureReason"] = reason[:_MAX_REASON]
        self.enter("Failed")

    def keep_model(self, uri: str) -> None:
        """Say where the model is."""
        with self._lock:
            self._told["ModelArtifacts"] = {"S3ModelArtifacts": uri}

    def read(self, line: str) -> None:
        """Take the job's metrics from a line of its log."""
        for name, pattern in self._patterns:
            found = pattern.search(line)
            try:
                value = float(found[1]) if found else None
            except (ValueError, IndexError):
                continue
            if value is not None:
                point = {"MetricName": name, "Value": value, "Timestamp": time.time()}
                with self._lock:
                    self._metrics[name] = point
