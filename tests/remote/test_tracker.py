"""What ranks elsewhere are told of their run in MLflow, and when."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote.tracker import MLFLOW_RUN, may_be_reached, mlflow_variable
from distrain_nb.config import Config
from distrain_nb.worker.files.tracked import TRACKED_VARIABLE, Tracked
from tests.sagemaker.jobs import job as sagemaker_job
from tests.vertex.jobs import job as vertex_job

SERVER = "https://ml.example"
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:mlflow-tracking-server/t"


@pytest.mark.parametrize(
    "uri", [SERVER, f"{SERVER}:8443/team", "http://10.0.0.7:5000", "http://mlflow:5000", ARN]
)
def test_a_server_elsewhere_may_be_reached(uri: str) -> None:
    assert may_be_reached(uri)


@pytest.mark.parametrize(
    "uri",
    ["", "off", "mlruns", "/data/mlruns", "file:///data/mlruns", "sqlite:////data/m.db",
     "postgresql://me:word@db/mlflow", "databricks", "http://localhost:5000", "http://LocalHost",
     "http://ml.localhost", "http://127.0.0.1:5000", "http://127.9.9.9", "http://[::1]:5000",
     "http://0.0.0.0:5000", "http://169.254.1.1", "http://", "http://[", "https:///x"],
)  # fmt: skip
def test_what_only_this_machine_has_is_told_nobody(uri: str) -> None:
    assert not may_be_reached(uri)


@pytest.mark.parametrize(("place", "made"), [("vertex", vertex_job), ("sagemaker", sagemaker_job)])
def test_a_request_has_a_place_for_the_run_of_such_a_tracker(place: str, made: Any) -> None:
    backend = find(place)

    def has_a_place(job: Any) -> bool:
        text = str(backend.plan(job))
        assert "word" not in text
        return TRACKED_VARIABLE in text and MLFLOW_RUN in text

    job = replace(made(), environ={}, config=Config())
    assert not has_a_place(job)
    assert has_a_place(replace(job, config=Config(mlflow="https://me:word@ml.example")))
    by_variable = replace(job, environ={"MLFLOW_TRACKING_URI": SERVER})
    assert has_a_place(by_variable)
    assert not has_a_place(replace(by_variable, config=Config(mlflow="off")))
    own = replace(job.options, env=("MLFLOW_TRACKING_URI=http://of-the-network",))
    assert not has_a_place(replace(by_variable, options=own))


def test_what_is_told_is_the_run_and_no_more(tmp_path: Path) -> None:
    assert mlflow_variable(tmp_path, study=False) == mlflow_variable(tmp_path, study=True) == "{}"
    Tracked(SERVER, note="down").write(tmp_path)
    assert not Tracked.from_text(mlflow_variable(tmp_path, study=False)).run
    Tracked(SERVER, "abc", "7", "digits", f"{SERVER}/#/abc").write(tmp_path)
    there = {"uri": SERVER, "run": "abc", "experiment": "7"}
    assert json.loads(mlflow_variable(tmp_path, study=False)) == there
    assert json.loads(mlflow_variable(tmp_path, study=True)) == {
        **there,
        "run": "",
        "parent": "abc",
    }
    assert Tracked.from_text(mlflow_variable(tmp_path, study=False)) == Tracked(SERVER, "abc", "7")
    Tracked(f"{SERVER}/{'x' * 500}", "abc", "7").write(tmp_path)  # more than a variable can have
    assert mlflow_variable(tmp_path, study=False) == "{}"


@pytest.mark.parametrize("text", ["", MLFLOW_RUN, "{}", "[]", "null", '{"run": 7}'])
def test_any_other_text_tells_of_no_run(text: str) -> None:
    assert Tracked.from_text(text) == Tracked("")
