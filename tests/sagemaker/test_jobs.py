"""What the service says of a job and of a refused call, in our words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session

from distrain_nb import api
from distrain_nb.backends.remote.service import Gone, Observed
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.places.sagemaker import client
from distrain_nb.places.sagemaker.jobs import observed
from distrain_nb.places.sagemaker.sdk import foreign
from distrain_nb.places.sagemaker.tuning_jobs import HyperParameterTuningJobs
from distrain_nb.worker.files.status import State


def told(status: str, second: str, reason: str = "", *passed: str, message: str = "") -> Any:
    transitions = [{"Status": each, "StatusMessage": ""} for each in (*passed, second)]
    transitions[-1]["StatusMessage"] = message
    return {
        "TrainingJobStatus": status,
        "SecondaryStatus": second,
        "SecondaryStatusTransitions": transitions,
        **({"FailureReason": reason} if reason else {}),
    }


FAILED = "AlgorithmError: Traceback of cell 3:\n  ValueError: no, exit code: 1"
SAID = {
    "pending": (told("InProgress", "Pending"), Observed(State.QUEUED, "waiting for instances")),
    "starting": (told("InProgress", "Starting"), Observed(State.STARTING, "starting")),
    "no machines": (
        told("InProgress", "Starting", message="Insufficient capacity error from EC2, retrying!"),
        Observed(
            State.STARTING, "starting", reason="Insufficient capacity error from EC2, retrying!"
        ),
    ),
    "running": (
        told("InProgress", "Training", "", "Starting", "Downloading", message="in progress."),
        Observed(State.RUNNING, "running"),
    ),
    "interrupted": (
        told("InProgress", "Interrupted", "", "Starting", "Training"),
        Observed(State.QUEUED, "interrupted, waiting for spot instances"),
    ),
    "running again": (
        told("InProgress", "Training", "", "Training", "Interrupted", "Starting"),
        Observed(State.RUNNING, "running", attempt=2),
    ),
    "twice": (
        told("InProgress", "Training", "", "Interrupted", "Training", "Interrupted"),
        Observed(State.RUNNING, "running", attempt=3),
    ),
    "uploading": (told("InProgress", "Uploading"), Observed(State.RUNNING, "uploading results")),
    "a new status": (told("InProgress", "Pondering"), Observed(State.STARTING, "pondering")),
    "stopping": (told("Stopping", "Stopping"), Observed(State.STOPPING, "stopping")),
    "stopped": (told("Stopped", "Stopped"), Observed(State.CANCELLED, "stopped")),
    "too long": (
        told("Stopped", "MaxRuntimeExceeded"),
        Observed(
            State.FAILED,
            "stopped",
            "the job was stopped: it ran for longer than --timeout allows",
        ),
    ),
    "done": (told("Completed", "Completed"), Observed(State.SUCCEEDED, "succeeded")),
    "a program that failed": (
        told("Failed", "Failed", FAILED),
        Observed(State.FAILED, "failed", "Traceback of cell 3:\n  ValueError: no"),
    ),
    "a service that failed": (
        told("Failed", "Failed", "CapacityError: Unable to provision requested ML capacity."),
        Observed(
            State.FAILED, "failed", "CapacityError: Unable to provision requested ML capacity."
        ),
    ),
    "no reason": (
        told("Failed", "Failed"), Observed(State.FAILED, "failed", "SageMaker: the job failed"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("description", "ours"), SAID.values(), ids=SAID)
def test_a_job_in_our_words(description: Any, ours: Observed) -> None:
    assert observed(description) == ours


class Saying:
    """A client whose tuning job, and whose trials, have a status."""

    def __init__(self, status: str) -> None:
        self._status = status

    def describe_hyper_parameter_tuning_job(self, **_: str) -> dict[str, Any]:
        status = {"HyperParameterTuningJobStatus": self._status, "TrainingJobDefinitions": [{}]}
        return {**status, "TrainingJobStatusCounters": {"InProgress": 1}}

    def get_paginator(self, _: str) -> Saying:
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        summary = {"TrainingJobName": "study-001-abc", "TrainingJobStatus": self._status}
        return [{"TrainingJobSummaries": [summary]}]


def statuses(shape: str) -> list[str]:
    return list(get_session().get_service_model("sagemaker").shape_for(shape).enum)


def test_each_status_of_a_tuning_job_goes_on_or_has_an_end() -> None:
    going_on = {}
    for status in statuses("HyperParameterTuningJobStatus"):
        jobs = HyperParameterTuningJobs(Saying(status))
        if status in ("Deleting", "DeleteFailed"):
            says = r"SageMaker (is deleting|failed to delete) the tuning job: it doesn't tell any"
            with pytest.raises(Gone, match=says):
                jobs.observe("study")
        elif not (found := jobs.observe("study")).state.final:
            going_on[status] = found.state
    assert going_on == {"InProgress": State.RUNNING, "Stopping": State.STOPPING}


def test_each_status_of_a_job_goes_on_or_has_an_end() -> None:
    words = {}
    for status in statuses("TrainingJobStatus"):
        (trial,) = HyperParameterTuningJobs(Saying(status)).trials("study")
        words[status] = f"{trial.state}: {trial.why}"
        if status == "Deleting":
            with pytest.raises(Gone, match="SageMaker is deleting the job"):
                observed(told(status, "Completed"))
        else:
            going_on = status in ("InProgress", "Stopping")
            assert observed(told(status, status)).state.final is not going_on
    assert words["Deleting"] == "cancelled: its training job is being deleted"
    assert words["Stopped"] == "cancelled: its training job was stopped"


def test_a_tuning_job_whose_trials_differ_in_more_than_values_is_no_study() -> None:
    with pytest.raises(OptionError, match="has several training job definitions"):
        HyperParameterTuningJobs(Saying("InProgress")).study("theirs")


def test_what_stands_for_a_tuning_job_is_a_study_and_no_run(home: Path) -> None:
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:hyper-parameter-tuning-job/theirs"
    job = SimpleNamespace(
        hyper_parameter_tuning_job_arn=arn, hyper_parameter_tuning_job_name="Theirs"
    )
    tuner = SimpleNamespace(latest_tuning_job=job)
    for each, name in ((arn, "theirs"), (job, "Theirs"), (tuner, "Theirs")):
        spec = foreign(each)
        assert spec and (spec.job, spec.region, spec.study) == (name, "eu-west-1", True)
        with pytest.raises(OptionError, match=f"^{name} tunes: `%distrain attach` makes it a"):
            api.attach(each)
    assert foreign(SimpleNamespace(latest_tuning_job=None)) is None
    trained = foreign(arn.replace("hyper-parameter-tuning-job", "training-job"))
    assert trained and not trained.study


ARN = "arn:aws:sts::123456789012"
REFUSED = {
    "a role": (
        "AccessDeniedException",
        f"User: {ARN}:assumed-role/Studio/me is not authorized to perform: "
        "sagemaker:CreateTrainingJob on resource: arn:aws:sagemaker:us-east-1:1:training-job/j "
        "because no identity-based policy allows the sagemaker:CreateTrainingJob action",
        "the role Studio lacks the permission sagemaker:CreateTrainingJob on arn:aws:sagemaker",
    ),
    "a user": (
        "AccessDenied",
        "User: arn:aws:iam::1:user/me is not authorized to perform: iam:PassRole on resource: r",
        "user me lacks the permission iam:PassRole on r. Have a policy added that allows it",
    ),
    "few words": ("AccessDenied", "Access Denied", "Access Denied: PutObject is not allowed."),
    "a quota": ("ResourceLimitExceeded", "The limit is 0.", "The limit is 0. Ask for more in"),
    "no bucket": ("NoSuchBucket", "It does not exist.", "It does not exist. Make it, or name"),
    "an old token": ("ExpiredToken", "It is expired.", "It is expired. Log in again: aws"),
    "another": ("ValidationException", "1 validation error", "Can't do it: 1 validation error"),
}


@pytest.mark.parametrize(("code", "message", "said"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_in_our_words(code: str, message: str, said: str) -> None:
    with pytest.raises(DistrainError) as plain, client.plain_words("do it"):
        raise ClientError({"Error": {"Code": code, "Message": message}}, "PutObject")
    assert str(plain.value).startswith("Can't do it: ")
    assert said in str(plain.value)


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where nobody is logged in to AWS."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))


def ask() -> None:
    with client.plain_words("ask AWS for the account"):
        client.client("sts", "us-east-1", {}).get_caller_identity()


@pytest.mark.usefixtures("nobody")
def test_who_is_not_logged_in_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DistrainError, match="Unable to locate credentials Log in: aws configure"):
        ask()
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(DistrainError, match=r"profile \(nobody\) could not be found Log in"):
        ask()


def test_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    nowhere = client.client("sts", "us-east-1", {"sts": "http://127.0.0.1:9"})
    with pytest.raises(DistrainError, match="AWS doesn't answer"), client.plain_words("ask"):
        nowhere.get_caller_identity()
