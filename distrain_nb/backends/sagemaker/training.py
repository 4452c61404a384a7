"""Training jobs: created once, observed, stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from distrain_nb.backends.remote.service import Observed
from distrain_nb.backends.sagemaker.calls import code_of, plain_words
from distrain_nb.worker.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping

_IN_USE, _INVALID = "ResourceInUse", "ValidationException"

# By secondary status, for as long as a job is in progress.
_PHASES = {
    "Pending": (State.QUEUED, "waiting for instances"),
    "Starting": (State.STARTING, "starting"),
    "LaunchingMLInstances": (State.STARTING, "launching instances"),
    "PreparingTrainingStack": (State.STARTING, "preparing instances"),
    "Downloading": (State.STARTING, "downloading input data"),
    "DownloadingTrainingImage": (State.STARTING, "downloading the image"),
    "Training": (State.RUNNING, "running"),
    "Interrupted": (State.QUEUED, "interrupted, waiting for spot instances"),
    "Restarting": (State.STARTING, "starting again"),
    "Uploading": (State.RUNNING, "uploading results"),
    "Updating": (State.RUNNING, "being updated"),
}
_TOO_LONG = {
    "MaxRuntimeExceeded": "the job was stopped: it ran for longer than --timeout allows",
    "MaxWaitTimeExceeded": "the job was stopped: it waited for longer than --max-wait allows",
}
_PROGRAM_FAILED = re.compile(r"AlgorithmError: (?P<said>.*?)(?:, exit code: -?\d+)?", re.DOTALL)


@dataclass(frozen=True)
class TrainingJobs:
    """The jobs of an account in a region; `client` is SageMaker's."""

    client: Any = field(repr=False)

    def create(self, request: Mapping[str, Any]) -> str:
        """Send a request, whose job has a name of its own, and give that name.

        A job of ours that has that name already is the one: its answer was lost. Raises
        DistrainError.
        """
        name = str(request["TrainingJobName"])
        with plain_words("submit the job"):
            try:
                self.client.create_training_job(**request)
            except ClientError as wrong:
                if code_of(wrong) != _IN_USE or not self._is_ours(request):
                    raise
        return name

    def observe(self, job: str) -> Observed:
        """State and phase, and why the job failed. Raises DistrainError."""
        with plain_words("ask how the job is doing"):
            return observed(self.client.describe_training_job(TrainingJobName=job))

    def stop(self, job: str) -> None:
        """Ask for it; a job that has ended stays as it is. Raises DistrainError."""
        with plain_words("stop the job"):
            try:
                self.client.stop_training_job(TrainingJobName=job)
            except ClientError as wrong:
                if code_of(wrong) != _INVALID:
                    raise

    def _is_ours(self, request: Mapping[str, Any]) -> bool:
        found = self.client.describe_training_job(TrainingJobName=request["TrainingJobName"])
        return bool(found.get("Environment") == request["Environment"])


def observed(told: Mapping[str, Any]) -> Observed:
    """What `DescribeTrainingJob` says, in our words."""
    status, second = str(told["TrainingJobStatus"]), str(told.get("SecondaryStatus", ""))
    if status == "Completed":
        return Observed(State.SUCCEEDED, "succeeded")
    if status == "Failed":
        reason = readable(str(told.get("FailureReason", "")))
        return Observed(State.FAILED, "failed", reason or "SageMaker: the job failed")
    if status == "Stopped":
        reason = _TOO_LONG.get(second, "")
        return Observed(State.FAILED if reason else State.CANCELLED, "stopped", reason)
    if status == "Stopping":
        return Observed(State.STOPPING, "stopping")
    state, phase = _PHASES.get(second, (State.STARTING, second.lower() or "starting"))
    return Observed(state, phase + _story(told.get("SecondaryStatusTransitions", ())))


def readable(reason: str) -> str:
    """What the program said when it failed, without what the service puts around it."""
    found = _PROGRAM_FAILED.fullmatch(reason.strip())
    return found["said"] if found else reason.strip()


def _story(transitions: Any) -> str:
    """What the last statuses tell beyond their names: interruptions, and a lack of instances."""
    times = sum(each["Status"] == "Interrupted" for each in transitions)
    latest = transitions[-1] if transitions else {}
    message = str(latest.get("StatusMessage", ""))
    if "capacity" in message.lower():
        return f": {message}"
    if not times or latest["Status"] == "Interrupted":
        return ""
    return f", interrupted {'once' if times == 1 else f'{times} times'} before"
