"""Training jobs: created once, observed, stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from botocore import exceptions
from botocore.exceptions import ClientError

from distrain_nb.backends.remote.service import Gone, Observed, Unanswered
from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.client import code_of, plain_words
from distrain_nb.worker.files.status import State

if TYPE_CHECKING:
    from botocore.client import BaseClient

    from distrain_nb.types import JsonObject

_SERVER_ERROR = 500  # and above: statuses of HTTP
INVALID, _NOT_FOUND = "ValidationException", "ResourceNotFound"
_IN_USE = "ResourceInUse"

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
_DELETED = {"Deleting": "is deleting", "DeleteFailed": "failed to delete"}
_PROGRAM_FAILED = re.compile(r"AlgorithmError: (?P<said>.*?)(?:, exit code: -?\d+)?", re.DOTALL)


class Transition(TypedDict, total=False):
    """One entry of a job's history."""

    Status: str
    StatusMessage: str


class Selected(TypedDict, total=False):
    """What of a `ResourceConfig` the service has chosen."""

    SelectedInstanceType: str
    SelectedInstanceCount: int


class Description(TypedDict, total=False):
    """What is read of what `DescribeTrainingJob` gives."""

    ResourceConfig: Selected

    TrainingJobStatus: str
    SecondaryStatus: str
    SecondaryStatusTransitions: list[Transition]
    FailureReason: str
    BillableTimeInSeconds: int


@dataclass(frozen=True)
class TrainingJobs:
    """The jobs of an account in a region; `client` is SageMaker's."""

    client: BaseClient = field(repr=False)

    def create(self, request: JsonObject) -> str:
        """Send a request, whose job has a name of its own, and give that name.

        A job of ours that has that name already is the one: its answer was lost. Raises
        DistrainError, Unanswered if the job may be there all the same.
        """
        return created(
            lambda: self.client.create_training_job(**request),
            str(request["TrainingJobName"]),
            lambda: self.find(request),
        )

    def find(self, request: JsonObject) -> str:
        """Return the job of ours that has the request's name; empty if there is none. Raises
        DistrainError."""
        name = str(request["TrainingJobName"])
        with plain_words("look for the job"):
            try:
                answer = self.client.describe_training_job(TrainingJobName=name)
            except ClientError as error:
                if is_missing(error):
                    return ""
                raise
        return name if answer.get("Environment") == request["Environment"] else ""

    def observe(self, job: str) -> Observed:
        """State and phase, and why the job failed. Raises DistrainError, Gone if it isn't there."""
        with plain_words("ask how the job is doing"):
            try:
                return observed(self.client.describe_training_job(TrainingJobName=job))
            except ClientError as error:
                if is_missing(error):
                    raise Gone("SageMaker doesn't have the job any more") from error
                raise

    def taken(self, job: str) -> tuple[str, int] | None:
        """Return the type and number of the instances that the service has chosen for a job; None
        as long as it hasn't. Raises DistrainError."""
        with plain_words("ask which instances the job has"):
            return chosen_instances(self.client.describe_training_job(TrainingJobName=job))

    def stop(self, job: str) -> None:
        """Ask for it; a job that has ended stays as it is. Raises DistrainError."""
        with plain_words("stop the job"):
            try:
                self.client.stop_training_job(TrainingJobName=job)
            except ClientError as error:
                if code_of(error) != INVALID:
                    raise


def created(create: Callable[[], object], name: str, find: Callable[[], str]) -> str:
    """Return the job of that name, once it is sent; `find` gives it where it is there and ours.
    Raises as `TrainingJobs.create` does."""
    with plain_words("submit the job"):
        try:
            create()
        except ClientError as error:
            if code_of(error) == _IN_USE:
                return _own_name(find, error)
            if _status_of(error) < _SERVER_ERROR:
                raise
            raise Unanswered(f"SageMaker didn't answer: {error}") from error
        except (exceptions.HTTPClientError, exceptions.EndpointConnectionError) as error:
            raise Unanswered(f"SageMaker didn't answer: {error}") from error
    return name


def _own_name(find: Callable[[], str], taken: ClientError) -> str:
    """Return the job that has the name already, if it is of this request."""
    try:
        name = find()
    except DistrainError as error:
        raise Unanswered(str(error)) from error
    if not name:
        raise taken
    return name


def observed(answer: Description) -> Observed:
    """Return the state in `DescribeTrainingJob`. Raises Gone as `refuse_deleted` does."""
    status, second = answer["TrainingJobStatus"], answer.get("SecondaryStatus", "")
    refuse_deleted(status, "the job")
    billed = answer.get("BillableTimeInSeconds")  # of all instances; on spot less than they ran
    if status == "Completed":
        return Observed(State.SUCCEEDED, "succeeded", billed=billed)
    if status == "Failed":
        reason = readable(answer.get("FailureReason", "")) or "SageMaker: the job failed"
        return Observed(State.FAILED, "failed", reason, billed=billed)
    if status == "Stopped":
        reason = _TOO_LONG.get(second, "")
        state = State.FAILED if reason else State.CANCELLED
        return Observed(state, "stopped", reason, billed=billed)
    if status == "Stopping":
        return Observed(State.STOPPING, "stopping")
    state, phase = _PHASES.get(second, (State.STARTING, second.lower() or "starting"))
    if chosen := chosen_instances(answer):
        phase += f" on {chosen[1]}*{chosen[0]}"
    reason, attempt = _story(answer.get("SecondaryStatusTransitions", []))
    return Observed(state, phase, reason=reason, attempt=attempt)


def chosen_instances(answer: Description) -> tuple[str, int] | None:
    """Return the type and number of the instances that the service has chosen; None as long as it
    hasn't."""
    resources = answer.get("ResourceConfig", {})
    name = resources.get("SelectedInstanceType", "")
    return (name, resources.get("SelectedInstanceCount", 1)) if name else None


def refuse_deleted(status: str, kind: str) -> None:
    """Raise Gone for a status that only deleted jobs have: it took the place of their last."""
    if status in _DELETED:
        raise Gone(f"SageMaker {_DELETED[status]} {kind}: it doesn't tell any more how that ended")


def is_missing(error: ClientError) -> bool:
    """Return whether the service has no job of a name."""
    message = str(error.response.get("Error", {}).get("Message", ""))
    said_so = code_of(error) == INVALID and "not found" in message.lower()
    return said_so or code_of(error) == _NOT_FOUND


def _status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def readable(reason: str) -> str:
    """Return the program's error without the text that the service puts around it."""
    match = _PROGRAM_FAILED.fullmatch(reason.strip())
    return match["said"] if match else reason.strip()


def _story(transitions: Sequence[Transition]) -> tuple[str, int]:
    """Return what the last statuses say besides their names: lacking instances, and the attempt,
    which ends with an interruption."""
    latest: Transition = transitions[-1] if transitions else {}
    message = latest.get("StatusMessage", "")
    over = sum(transition["Status"] == "Interrupted" for transition in transitions[:-1])
    return (message if "capacity" in message.lower() else ""), 1 + over
