"""What is mirrored, where to, and what ranks know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb.config import CONFIG_FILE, Config
from distrain_nb.errors import OptionError
from distrain_nb.places.vertex.experiments import ExperimentsPlace
from distrain_nb.places.vertex.settings import VARIABLES
from distrain_nb.places.vertex.tracking import VERTEX
from distrain_nb.run import Store
from distrain_nb.run.store import Record
from distrain_nb.tracking.address import address, without_password
from distrain_nb.tracking.process import TRIES, TrackingProcess
from distrain_nb.tracking.request import TrackingRequest, pending
from distrain_nb.tracking.runs import begin_run, begin_study, place_request
from distrain_nb.tracking.starting import begin, owner
from distrain_nb.worker.files.folder import STATUS_FILE
from distrain_nb.worker.files.tracked import Tracked, variables
from tests.conftest import holding

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


@pytest.mark.parametrize(
    ("program", "goes_on"),
    [
        ("import mlflow\nmlflow.set_experiment('other')", False),
        ("import mlflow as mf\nmf.set_tracking_uri(uri='http://ml.example')", False),
        ("from mlflow import set_experiment\nset_experiment(f'digits')", False),
        ("import mlflow\nmlflow.set_experiment(experiment_id='7')", False),
        ("import mlflow\nmlflow.set_experiment('digits', None)", False),
        (f"import mlflow\nmlflow.set_experiment('digits')\nmlflow.set_tracking_uri('{SERVER}')",
         True),
        ("import mlflow\n# mlflow.set_experiment('other')\nmlflow.autolog()", True),
        ("space.set_experiment('other')", True),
        ("import mlflow\nmlflow.set_experiment('other'", True),
    ],
)  # fmt: skip
def test_a_program_that_names_another_experiment_or_tracker_has_its_way(
    program: str, goes_on: bool, tmp_path: Path
) -> None:
    """MLflow refuses to go on with a run in an experiment other than the one that is set."""
    (tmp_path / "tracking.json").touch()
    Tracked(SERVER, "abc", "7", "digits").write(tmp_path)
    module = tmp_path / "program" / "package" / "training.py"
    module.parent.mkdir(parents=True)
    module.write_text(program)
    (tmp_path / "program" / "main.py").write_text("await x\n")
    found = variables(tmp_path, 0, 0)
    assert found["MLFLOW_TRACKING_URI"] == SERVER
    assert ("MLFLOW_RUN_ID" in found) == goes_on
    assert ("MLFLOW_EXPERIMENT_ID" in found) == goes_on


@pytest.mark.parametrize(
    ("variable", "kept"),
    [("http://me:word@127.0.0.1:5000", True), ("http://me:word@elsewhere", False)],
)
def test_rank_0_has_the_login_of_its_runs_tracker_and_of_no_other(
    variable: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", variable)
    (tmp_path / "tracking.json").touch()
    Tracked(SERVER, "abc", "7", "digits").write(tmp_path)
    assert variables(tmp_path, 0, 0).get("MLFLOW_TRACKING_URI", variable) == (
        variable if kept else SERVER
    )


def test_no_password_is_written_down(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distrain_nb.tracking.starting._see_to_it", lambda kind: None)
    monkeypatch.setattr("distrain_nb.tracking.kinds.find_spec", lambda name: name)
    request = request_for(home / "runs" / "1", uri="https://me:open%40sesame@ml.example/x")
    assert begin(request, waits=False) == ""
    (kept,) = pending().values()
    assert kept.uri == "https://ml.example/x"
    assert not [path for path in holding(home, "sesame") if path.suffix == ".json"]


def test_no_note_tells_the_password_of_a_database(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_for(home / "runs" / "1", uri="odd://me:open%40sesame@db/mlflow")
    TrackingProcess()._mirror(request)  # MLflow's client quotes the address
    assert request.tracked is not None and "odd://me:***@db/mlflow" in request.tracked.note
    monkeypatch.setattr("distrain_nb.tracking.kinds.find_spec", lambda name: None)
    assert "odd://me:***@db" in begin(request, waits=True)
    assert without_password("no open@sesame@db, but :open@sesame@db", request.uri) == (
        "no open@sesame@db, but :***@db"
    )


def test_what_is_refused_again_and_again_ends_no_process(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is about to be started stays on the list; one that can't be read leaves it."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (home / "mlruns").as_uri()
    request = request_for(home / "runs" / "1", uri=uri, experiment="too long" * 100)
    request.write()
    process = TrackingProcess()
    for _ in range(TRIES):
        process._mirror(request)
    assert list(pending()) == [request.key]
    (request.path / STATUS_FILE).write_text("[]")
    process._mirror(request)
    assert not pending()


def test_without_mlflow_there_is_a_note_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distrain_nb.tracking.kinds.find_spec", lambda name: None)
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


@pytest.mark.parametrize(
    ("config", "backend", "experiment", "own", "found"),
    [
        (Config(), "local", "digits", "", None),
        (Config(tracking="vertex"), "local", "", "", None),
        (Config(tracking="off"), "vertex", "digits", "vertex://p/us-east1", None),
        (Config(tracking="vertex"), "local", "My digits", "",
         ("vertex://my-project/us-central1", "my-digits", "run-7")),
        (Config(tracking="vertex", of_backends={"tensorboard": "12", "project": "theirs"}), "local",
         "a/b", "", ("vertex://theirs/us-central1?tensorboard=12", "a-b-runs", "run-7")),
        (Config(), "vertex", "digits", "vertex://p/us-east1",
         ("vertex://p/us-east1", "digits", "run-7")),
        (Config(), "vertex", "digits/third", "vertex://p/us-east1",
         ("vertex://p/us-east1", "digits", "third")),
    ],
)  # fmt: skip
def test_what_vertex_ai_experiments_is_to_have(
    config: Config,
    backend: str,
    experiment: str,
    own: str,
    found: tuple[str, str, str] | None,
    tmp_path: Path,
) -> None:
    record = Record(7, "Run 7", backend, 1.0, experiment, "-n 2", {}, tmp_path)
    environ = {"GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_REGION": "us-central1"}
    request = place_request(record, config, environ, own, here=True)
    if found is None:
        assert request is None
        return
    assert request is not None
    assert (request.uri, request.experiment, request.name) == found
    assert request.joins == ("third" in found)
    assert request.tags["distrain.layout"] == "-n 2" and "mlflow.source.name" not in request.tags


def test_without_a_project_there_is_a_note_and_the_run_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*VARIABLES["project"], "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    settings = "distrain_nb.places.vertex.experiments.machine_settings"
    monkeypatch.setattr(settings, lambda environ: {})
    Config(tracking="vertex").save()
    record = Store().add("night", "local", "nights", "-n 2")
    expected = "no project is set: %distrain config project=my-project"
    note = begin_run(record, Config.load(), here=True)
    assert note == f"not mirrored to Vertex AI Experiments: {expected}"
    assert not pending(VERTEX)


def test_settings_that_can_not_be_read_keep_a_study_from_trackers_and_say_so(home: Path) -> None:
    home.mkdir()
    (home / CONFIG_FILE).write_text("mlflow: [")
    note = begin_study(home / "studies" / "1", "bowl", 1.0, "bowls", {}, here=True)
    assert str(home / CONFIG_FILE) in note


def test_a_setting_takes_what_it_names() -> None:
    assert Config().changed("tracking", "vertex", {}).tracking == "vertex"
    with pytest.raises(OptionError, match="invalid tracking 'vortex': expected vertex or off"):
        Config().changed("tracking", "vortex", {})


@pytest.mark.parametrize(
    "place",
    [
        ExperimentsPlace("p", "us-east1"),
        ExperimentsPlace("p:q.r", "us-east1", "projects/1/locations/us-east1/tensorboards/2"),
        ExperimentsPlace("p", "us-east1", rehearsed=True),
    ],
)
def test_a_place_is_an_address_and_back(place: ExperimentsPlace) -> None:
    assert ExperimentsPlace.of(str(place)) == place
