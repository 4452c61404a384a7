"""The states of a job of Vertex AI, whoever ends it first."""

from __future__ import annotations

import pytest
from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.job_resource import ENDED, JobResource, States

pytestmark = pytest.mark.brief

NAME = "projects/p/locations/r/customJobs/1"


def job() -> JobResource:
    requested = types.CustomJob(display_name="a job")
    resource = JobResource(requested, NAME, States.JOB_STATE_PENDING)
    resource.enter(States.JOB_STATE_RUNNING)
    assert not requested.name, "what the caller has is not changed"
    return resource


@pytest.mark.parametrize("state", ENDED)
def test_what_has_ended_can_not_be_cancelled(state: object) -> None:
    resource = job()
    resource.enter(state)
    assert not resource.cancel()
    assert resource.message().state == state


def test_what_is_being_cancelled_only_ends() -> None:
    resource = job()
    assert resource.cancel()
    resource.enter(States.JOB_STATE_RUNNING)
    assert resource.message().state == States.JOB_STATE_CANCELLING
    assert not resource.message().end_time
    resource.enter(States.JOB_STATE_CANCELLED)
    assert resource.message().state == States.JOB_STATE_CANCELLED
    assert resource.message().end_time


def test_a_job_that_runs_again_keeps_its_start() -> None:
    resource = job()
    start = resource.message().start_time
    resource.enter(States.JOB_STATE_PENDING)
    resource.enter(States.JOB_STATE_RUNNING)
    resource.enter(States.JOB_STATE_FAILED, "it has failed")
    message = resource.message()
    assert message.start_time == start
    assert message.error.message == "it has failed"
