"""A trial of a tuning job on SageMaker: what its worker learns of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distrain_nb.worker.replica import sagemaker

JOB = "study-1a2b3c4d-007-0123abcd"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/opt/ml of a trial, whose values come as texts beside a hyperparameter of the job."""
    given = {
        "lr": "0.01",
        "tag": "16",
        "epochs": "60",
        "_tuning_objective_metric": "val/loss",
    }
    config = tmp_path / "input" / "config"
    config.mkdir(parents=True)
    (config / "hyperparameters.json").write_text(json.dumps(given))
    monkeypatch.setenv("DISTRAIN_TUNED", "lr,tag")
    monkeypatch.setenv("TRAINING_JOB_NAME", JOB)
    return tmp_path


def test_its_values_are_arguments_and_its_number_is_that_of_its_job(root: Path) -> None:
    assert sagemaker.trial(root) == {
        "DISTRAIN_ARGUMENTS": '["--lr=0.01", "--tag=16"]',
        "CLOUD_ML_TRIAL_ID": "7",
    }


def test_it_keeps_nothing_where_other_trials_do(root: Path) -> None:
    folders = sagemaker.folders(root)
    own = root / "checkpoints" / JOB
    assert folders["AIP_CHECKPOINT_DIR"] == str(own / "checkpoints")
    assert folders["AIP_TENSORBOARD_LOG_DIR"] == str(own / "tensorboard")


def test_any_other_job_is_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTRAIN_TUNED")
    assert sagemaker.trial(root) == {}
    assert sagemaker.folders(root)["AIP_CHECKPOINT_DIR"] == str(root / "checkpoints")
