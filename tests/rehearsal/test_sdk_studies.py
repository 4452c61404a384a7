"""Tuning jobs that the clouds' own SDKs have made become studies: followed, seen, cancelled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from google.cloud.aiplatform import hyperparameter_tuning as hpt
from google.cloud.aiplatform import initializer

import distrain_nb
from distrain_nb import api
from distrain_nb.backends.remote import studies
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.magics.lines import run_line
from distrain_nb.places.vertex import client
from distrain_nb.study import Study, attaching
from distrain_nb.study.service import ServiceTrials
from distrain_nb.study.summary import summary_of
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.image.services.bases import BaseImage
from tests.vertex.packages import base_with

from .conftest import BUCKET, Cloud, cloud_with, pool

pytestmark = pytest.mark.slow

# Its first trial ends, its second doesn't.
PROGRAM = """\
import argparse, os, time
import hypertune

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--units", type=int)
given = parser.parse_args()
number = int(os.environ["CLOUD_ML_TRIAL_ID"])
print("trial", number, "of", given.units, "units", flush=True)
hypertune.HyperTune().report_hyperparameter_tuning_metric("accuracy", given.lr, 1)
if number > 1:
    time.sleep(600)
"""


@pytest.fixture
def vertex(no_docker: None, small: BaseImage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The stand-in, which the SDK and the processes of studies take for Vertex AI."""
    with cloud_with(small) as cloud:
        base_with("cloudml-hypertune").push(cloud.base)
        own = client.job_client

        def carry(folder: Path) -> None:
            trials = ServiceTrials(Study(folder).file, folder)
            studies.carry_study(folder, trials, cloud.endpoints)

        def start(folder: Path) -> None:
            threading.Thread(target=carry, args=(folder,), daemon=True).start()

        settings = initializer.global_config
        monkeypatch.setattr(settings, "create_client", lambda *_, **__: cloud.jobs)
        monkeypatch.setattr(settings, "_credentials", AnonymousCredentials())
        monkeypatch.setattr(
            client, "job_client", lambda place, given: own(place, given or cloud.endpoints)
        )
        monkeypatch.setattr(attaching, "start_process", start)
        yield cloud


@contextmanager
def tuning(image: str) -> Iterator[Any]:
    """A tuning job as Google's guides write it, once the service has it. The SDK waits for it in a
    thread, which has ended at last."""
    trial = aiplatform.CustomJob(
        display_name="trial",
        worker_pool_specs=[pool(image)],
        base_output_dir=f"gs://{BUCKET}/tuning",
        staging_bucket=f"gs://{BUCKET}",
        project="my-project",
        location="us-central1",
    )
    job = aiplatform.HyperparameterTuningJob(
        display_name="their tuning",
        custom_job=trial,
        metric_spec={"accuracy": "maximize"},
        parameter_spec={
            "lr": hpt.DoubleParameterSpec(min=0.001, max=1, scale="log"),
            "units": hpt.DiscreteParameterSpec(values=[64, 128, 512], scale=None),
        },
        max_trial_count=3,
        parallel_trial_count=1,
        project="my-project",
        location="us-central1",
    )
    job.run(sync=False)
    job.wait_for_resource_creation()
    try:
        yield job
    finally:
        job.cancel()
        with suppress(RuntimeError):  # that it was cancelled
            job.wait()


def has_begun(study: Study, number: int) -> bool:
    return len(study.all_trials()) == number and bool(study[number].goals and study[number].run_id)


def test_a_tuning_job_of_the_sdk_is_a_study(
    vertex: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    with tuning(vertex.image(PROGRAM, look_inside=True)) as job:
        study = distrain_nb.attach(job)
        assert isinstance(study, Study) and study.name == "their tuning"
        assert study.file.python == sys.executable  # whoever starts its process again
        again: Any = run_line(["attach", job.resource_name], SimpleNamespace(user_ns={}))
        assert again.id == study.id and "study 1 (their tuning)" in capsys.readouterr().out
        with pytest.raises(DistrainError, match="Can't ask what the tuning job tries"):
            distrain_nb.attach(f"{job.resource_name}0")
        assert len(distrain_nb.studies()) == 1
        assert [parameter.name for parameter in study.spec.parameters] == ["lr", "units"]
        assert (study.spec.goals[0].direction, study.requested_trials) == ("max", 3)
        assert eventually(lambda: has_begun(study, 2), 300), study.status
        first, second = study.all_trials()
        assert str(first.state) == "succeeded"
        assert first.params["units"] in (64, 128, 512)
        assert first.goals["accuracy"] == pytest.approx(first.params["lr"])
        assert study.best.number == 1 and first.run.name == "their tuning-1"
        said = f"trial 2 of {second.params['units']} units"
        assert eventually(lambda: said in second.run.logs(), 300)
        assert eventually(lambda: first.run.state.final, 300)
        assert f"trial 1 of {first.params['units']} units" in first.run.logs()
        with pytest.raises(OptionError, match="%distrain attach` makes it a study"):
            api.attach(job)
        study.cancel()
        assert eventually(lambda: study.state.final, 300), study.status
        assert study.state is State.CANCELLED
        assert [trial.run.state for trial in study.all_trials()] == [
            State.SUCCEEDED,
            State.CANCELLED,
        ]
        assert job.state.name == "JOB_STATE_CANCELLED"
        assert "submitting" not in [step.label for step in summary_of(study).steps]
