"""Tuning jobs on the stand-in, asked for by Google's own client and run under bubblewrap."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import types

from tests.image.services.bases import BaseImage
from tests.vertex.packages import base_with

from .conftest import BUCKET, OVER, PARENT, Cloud, cloud_with, pool

pytestmark = pytest.mark.slow

# What it does depends on the number of its trial: the fourth is bad and doesn't end, the fifth
# fails, and the sixth says nothing.
PROGRAM = """\
import argparse, os, time
import hypertune

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--kind")
given = parser.parse_args()
number = int(os.environ["CLOUD_ML_TRIAL_ID"])
assert number != 5, "the fifth trial fails"
print("trial", number, given.kind, os.environ["AIP_MODEL_DIR"], flush=True)
reporter = hypertune.HyperTune()
for step in range(1, 4) if number != 6 else ():
    value = given.x if number != 4 else -10.0 * step
    reporter.report_hyperparameter_tuning_metric("accuracy", value, step)
if number == 4:
    time.sleep(600)
"""
METRIC = {"metric_id": "accuracy", "goal": "MAXIMIZE"}
X = {"parameter_id": "x", "double_value_spec": {"min_value": 0, "max_value": 1}}
KIND = {"parameter_id": "kind", "categorical_value_spec": {"values": ["a", "b"]}}
States: Any = types.Trial.State


@pytest.fixture(scope="module")
def sandboxed(
    home: None, small: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    patch = pytest.MonkeyPatch()
    patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('docker') / 'nobody'}")
    with cloud_with(small) as running:
        base_with("cloudml-hypertune").push(running.base)
        yield running
    patch.undo()


@pytest.fixture(scope="module")
def image(sandboxed: Cloud) -> str:
    return sandboxed.image(PROGRAM, look_inside=True)


def submit(cloud: Cloud, image: str, study: dict[str, Any] | None = None, **more: Any) -> str:
    output = {"output_uri_prefix": f"gs://{BUCKET}/study"}
    job = {
        "display_name": "a study",
        "study_spec": {"metrics": [METRIC], "parameters": [X, KIND], **(study or {})},
        "max_trial_count": 3,
        "parallel_trial_count": 1,
        "trial_job_spec": {"worker_pool_specs": [pool(image)], "base_output_directory": output},
        **more,
    }
    asked = {"parent": PARENT, "hyperparameter_tuning_job": job}
    return str(cloud.jobs.create_hyperparameter_tuning_job(asked).name)


def wait(cloud: Cloud, name: str) -> types.HyperparameterTuningJob:
    while True:
        job = cloud.jobs.get_hyperparameter_tuning_job(name=name)
        if job.state.name.removeprefix("JOB_STATE_") in OVER:
            return job
        time.sleep(0.1)


def test_trials_are_suggested_and_their_measurements_are_those_of_hypertune(
    sandboxed: Cloud, image: str
) -> None:
    name = submit(sandboxed, image, parallel_trial_count=2, labels={"distrain_run": "one"})
    job = wait(sandboxed, name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    assert [trial.id for trial in job.trials] == ["1", "2", "3"]
    for trial in job.trials:
        given = {each.parameter_id: each.value for each in trial.parameters}
        assert trial.state == States.SUCCEEDED and 0 <= given["x"] <= 1
        (metric,) = trial.final_measurement.metrics
        assert (metric.metric_id, metric.value) == ("accuracy", given["x"])
        assert [each.step_count for each in trial.measurements] == [1, 2, 3]
        (said,) = sandboxed.said(trial.custom_job, "workerpool0-0")
        folder = f"/gcs/{BUCKET}/study/{trial.id}/model/"
        assert said == f"[rank 0] trial {trial.id} {given['kind']} {folder}"
    first, second, third = (trial.start_time.timestamp() for trial in job.trials)
    ends = (trial.end_time.timestamp() for trial in list(job.trials)[:2])
    assert first <= second < min(ends) <= third
    asked = {"parent": PARENT, "filter": 'labels.distrain_run="one"'}
    assert [each.name for each in sandboxed.jobs.list_hyperparameter_tuning_jobs(asked)] == [name]


def test_a_trial_is_stopped_early_others_fail_and_too_many_end_the_job(
    sandboxed: Cloud, image: str
) -> None:
    stop = {"median_automated_stopping_spec": {}}
    job = wait(
        sandboxed, submit(sandboxed, image, stop, max_trial_count=9, max_failed_trial_count=2)
    )
    assert job.state.name == "JOB_STATE_FAILED"
    assert job.error.message.startswith("Too many failed trials: 2 trials failed.")
    stopped, failed, silent = list(job.trials)[3:]
    assert stopped.state == States.SUCCEEDED
    assert stopped.final_measurement.metrics[0].value in (-10, -20, -30)
    state = sandboxed.jobs.get_custom_job(name=stopped.custom_job).state.name
    assert state == "JOB_STATE_CANCELLED"
    assert failed.state == silent.state == States.INFEASIBLE
    assert "workerpool0-0 exited with a non-zero status of 1" in failed.infeasible_reason
    ended = "The trial ended without a value of the metric accuracy."
    assert silent.infeasible_reason == ended


def test_a_job_that_is_cancelled_cancels_its_trials(sandboxed: Cloud, image: str) -> None:
    name = submit(sandboxed, image, max_trial_count=4)
    while len(trials := sandboxed.jobs.get_hyperparameter_tuning_job(name=name).trials) < 4:
        time.sleep(0.1)
    sandboxed.wait_for(trials[3].custom_job, "workerpool0-0", "trial 4")
    sandboxed.jobs.cancel_hyperparameter_tuning_job(name=name)
    job = wait(sandboxed, name)
    assert job.state.name == "JOB_STATE_CANCELLED"
    assert job.trials[3].state == States.INFEASIBLE
    state = sandboxed.jobs.get_custom_job(name=job.trials[3].custom_job).state.name
    assert state == "JOB_STATE_CANCELLED"
    sandboxed.jobs.cancel_hyperparameter_tuning_job(name=name)
    with pytest.raises(exceptions.NotFound):
        sandboxed.jobs.get_hyperparameter_tuning_job(name=f"{name}0")


REVERSED = {"parameter_id": "y", "double_value_spec": {"min_value": 1, "max_value": 0}}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"max_trial_count": 0}, "max_trial_count and parallel_trial_count are required"),
        ({"parallel_trial_count": 4}, "parallel_trial_count 4 is more than max_trial_count 3"),
        ({"display_name": ""}, "display_name is required"),
        ({"trial_job_spec": {}}, "1 to 4 worker_pool_specs"),
        ({"study": {"parameters": []}}, "--tune"),
        ({"study": {"parameters": [REVERSED]}}, "y"),
        ({"study": {"metrics": []}}, "--goal"),
        ({"study": {"convex_automated_stopping_spec": {}}}, "A rehearsal has no convex stopping"),
    ],
)
def test_what_the_service_would_not_take_is_refused(
    sandboxed: Cloud, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(exceptions.GoogleAPICallError, match=says):
        submit(sandboxed, "image", **more)
