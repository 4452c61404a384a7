"""No secret reaches a tracker, whichever way it would go.

MLflow's own client writes into a database and a folder, which are then read byte by byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb.secrets import Guard
from distrain_nb.tracking.guarded import _clean_samples
from distrain_nb.tracking.process import TrackingProcess
from distrain_nb.tracking.request import TrackingRequest
from distrain_nb.tracking.tracker import Sample
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, RESULTS_FOLDER
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.rank import values

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

TOKEN = "hf" + "_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7"
PASSWORD = "hunter2-and-more"
LEAKS = (TOKEN, PASSWORD)

SOURCE = f"""\
import os
login("{TOKEN}")
db_password = '{PASSWORD}'
print("trained")
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a file store, by MLflow's own client."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("A_SERVICE_API_KEY", PASSWORD)
    return tmp_path / "mlruns"


def mirrored(server: Path, folder: Path, error: str = "") -> Run:
    """The run that MLflow has of a folder, whose state says that it has ended."""

    (folder / PROGRAM_FOLDER / "lib").mkdir(parents=True)
    (folder / PROGRAM_FOLDER / "main.py").write_text(SOURCE)
    (folder / PROGRAM_FOLDER / "lib" / "plain.py").write_text("x = 1\n")
    Status(State.FAILED, error=error).write(folder)
    request = TrackingRequest(
        server.as_uri(), f"e {TOKEN}", f"run {TOKEN}", "k", 1.0, str(folder),
        {"token": TOKEN, "db_password": PASSWORD, "lr": "0.1", TOKEN: "1"},
        {"distrain.args": f"--api-key={PASSWORD} --epochs 3", "distrain.layout": "-n 2"},
    )  # fmt: skip
    process = TrackingProcess()
    process._mirror(request)
    process._mirror(request)
    assert request.tracked is not None and request.tracked.done, request.tracked
    return client_of(server).get_run(request.tracked.run)


def client_of(server: Path) -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient(server.as_uri())


def leaks(server: Path) -> list[str]:
    return [
        f"{path.relative_to(server)}: {leak}"
        for path in server.rglob("*")
        for leak in LEAKS
        if leak in path.name or (path.is_file() and leak.encode() in path.read_bytes())
    ]


def test_program_parameters_tags_and_names_go_without_secrets(
    home: Path, server: Path, tmp_path: Path
) -> None:
    folder = home / "runs" / "1"
    run = mirrored(server, folder, f"ValueError: 401 for {TOKEN}, and key {PASSWORD!r}")
    assert not leaks(server)
    assert run.data.params["lr"] == "0.1" and run.data.params["token"] == "***"
    assert run.data.tags["distrain.args"] == "--api-key=*** --epochs 3"
    assert run.data.tags["distrain.error"].startswith("ValueError: 401 for ***")
    main = client_of(server).download_artifacts(run.info.run_id, "program/main.py", str(tmp_path))
    assert Path(main).read_text() == "\n".join(
        ("import os", 'login("***', "db_password = '***'", 'print("trained")', "")
    )


def test_results_that_look_like_secrets_stay_here_and_a_tag_says_so(
    home: Path, server: Path
) -> None:
    folder = home / "runs" / "1"
    values.dump({"api_key": PASSWORD, "loss": 0.5}, folder / RESULTS_FOLDER)
    (folder / RESULTS_FOLDER / "deep").mkdir()
    (folder / RESULTS_FOLDER / "deep" / "notes.txt").write_text("fine")
    (folder / RESULTS_FOLDER / "deep" / "id_ed25519").write_text(PASSWORD)
    run = mirrored(server, folder)
    assert not leaks(server)
    said = run.data.tags["distrain.not_kept"]
    assert "api_key: looks like a secret" in said
    assert "results/deep/id_ed25519: looks like a private key" in said
    kept = [item.path for item in client_of(server).list_artifacts(run.info.run_id, "results/deep")]
    assert kept == ["results/deep/notes.txt"]


def test_a_metric_named_by_a_secret() -> None:
    (sample,) = _clean_samples([Sample(f"loss {TOKEN}", 1, 1, 0.5)], {}, Guard())
    assert sample.metric == "loss ***"


def test_a_trial_waits_for_the_run_of_its_study_and_is_below_it(home: Path, server: Path) -> None:
    folders = {name: home / name for name in ("study", "trial")}
    for folder in folders.values():
        folder.mkdir(parents=True)
        Status(State.RUNNING).write(folder)
    study, trial = (
        TrackingRequest(server.as_uri(), "e", name, name, 1.0, str(folder), parent=parent)
        for (name, folder), parent in zip(folders.items(), ("", str(folders["study"])), strict=True)
    )
    process = TrackingProcess()
    process._mirror(trial)
    assert trial.tracked is None
    process._mirror(study)
    process._mirror(trial)
    assert study.tracked is not None and trial.tracked is not None
    run = client_of(server).get_run(trial.tracked.run)
    assert run.data.tags["mlflow.parentRunId"] == study.tracked.run
