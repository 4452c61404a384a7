"""What is mirrored, where to, and what ranks know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.config import Config
from distrain_nb.tracking.request import TrackingRequest, address, pending
from distrain_nb.tracking.starting import begin, owner
from distrain_nb.worker.files.tracked import Tracked, variables

SERVER = "http://127.0.0.1:5000"


def request_for(folder: Path, **fields: object) -> TrackingRequest:
    folder.mkdir(parents=True, exist_ok=True)
    given = {"uri": SERVER, "experiment": "e", "name": "n", "key": "k", "created": 1.0}
    return TrackingRequest(**{**given, "folder": str(folder), **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kept", "variable", "found"),
    [
        ("", "", ""),
        ("", SERVER, SERVER),
        (SERVER, "http://elsewhere", SERVER),
        ("off", SERVER, ""),
        ("", "sqlite:///m.db", "sqlite:////here/m.db"),
        ("", "sqlite:////there/m.db", "sqlite:////there/m.db"),
        ("", "mlruns", "file:///here/mlruns"),
        ("", "databricks", "databricks"),
        ("arn:aws:sagemaker:eu-west-1:123456789012:mlflow-tracking-server/t", SERVER,
         "arn:aws:sagemaker:eu-west-1:123456789012:mlflow-tracking-server/t"),
    ],
)  # fmt: skip
def test_where_runs_are_mirrored_to(
    kept: str, variable: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = found.replace("/here", str(tmp_path))
    assert address(Config(mlflow=kept), {"MLFLOW_TRACKING_URI": variable}) == expected


def test_rank_0_goes_on_with_the_trackers_run_and_no_other_does(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert variables(tmp_path, 0, 0) == {}  # not tracked
    (folder / "tracking.json").parent.mkdir()
    (folder / "tracking.json").touch()
    before = variables(folder, 0, 0)
    assert before["MLFLOW_TRACKING_URI"] == (folder / "mlflow" / "0").as_uri()
    Tracked(SERVER, "abc", "7", "digits").write(folder)
    assert variables(folder, 0, 0) == {
        "MLFLOW_TRACKING_URI": SERVER,
        "MLFLOW_RUN_ID": "abc",
        "MLFLOW_EXPERIMENT_ID": "7",
        "MLFLOW_EXPERIMENT_NAME": "digits",
    }
    for process, rank in ((1, 1), (2, None)):
        own = variables(folder, process, rank)
        assert own["MLFLOW_TRACKING_URI"] == (folder / "mlflow" / str(process)).as_uri()
        assert "MLFLOW_RUN_ID" not in own


def test_no_password_is_written_down(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distrain_nb.tracking.starting._see_to_it", lambda kind: None)
    monkeypatch.setattr("distrain_nb.tracking.tracker.find_spec", lambda name: name)
    request = request_for(home / "runs" / "1", uri="https://me:open%40sesame@ml.example/x")
    assert begin(request, waits=False) == ""
    (kept,) = pending().values()
    assert kept.uri == "https://ml.example/x"
    assert not [path for path in home.rglob("*.json") if b"sesame" in path.read_bytes()]


def test_without_mlflow_there_is_a_note_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distrain_nb.tracking.tracker.find_spec", lambda name: None)
    note = begin(request_for(home / "runs" / "1"), waits=True)
    assert note == f"not mirrored to MLflow at {SERVER}: pip install 'distrain-nb[mlflow]'"
    assert not pending() and owner() is None


def test_what_is_done_is_off_the_list(home: Path) -> None:
    second, first = (
        request_for(home / "runs" / name, key=name, created=created)
        for name, created in (("2", 2.0), ("1", 1.0))
    )
    second.write()
    first.write()
    assert list(pending()) == ["1", "2"]
    first.strike()
    first.strike()
    assert list(pending()) == ["2"]
    assert TrackingRequest.read(first.path) == first
