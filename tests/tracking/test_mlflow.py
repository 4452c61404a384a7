"""Runs and studies on a real MLflow server: every number, once, whoever is killed when."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api, study
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.backends.tuning import ServiceTrial
from distrain_nb.run import Run
from distrain_nb.study.service import ServiceTrials
from distrain_nb.study.trial import StudyTrial
from distrain_nb.tracking import catch_up
from distrain_nb.tracking.request import pending
from distrain_nb.tracking.starting import owner
from distrain_nb.worker.files.tracked import TRACKED_VARIABLE, Tracked
from tests.conftest import eventually
from tests.tracking.points import points_here, points_there
from tests.tracking.server import Server

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run as TheirRun

pytestmark = pytest.mark.slow

# Ranks 0 and 1 call MLflow, as a cell does that knows of no ranks.
FOUR = """\
import os
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
for step in range(30):
    log_metrics({"train/loss": lr / (step + 1)}, step=step, every_rank=True)
    log_metrics({"odd name!": step % 7}, step=step)
log_metrics({"never": float("nan"), "high": float("inf")}, step=0)
if rank == 0:
    from tensorboardX import SummaryWriter
    with SummaryWriter(os.environ["AIP_TENSORBOARD_LOG_DIR"]) as writer:
        writer.add_hparams({"lr": 9.0, "layers": 3, "own": "no"}, {}, name="session")
if rank < 2:
    import mlflow
    with mlflow.start_run():
        mlflow.log_param("own", "yes")
        mlflow.log_metric("by_hand", 0.25 + rank)
weights = [lr, rank]
"""

AUTOLOG = """\
import mlflow
from distrain_nb import log_metrics
from sklearn.linear_model import LogisticRegression
mlflow.autolog(log_models=False)
log_metrics({"ours": 0.25}, step=0)
LogisticRegression(C=C, max_iter=77).fit([[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1])
"""

OWN = """\
import mlflow
from distrain_nb import log_metrics
mlflow.set_experiment("mine")
log_metrics({"ours": 0.5}, step=0)
with mlflow.start_run():
    mlflow.log_metric("by_hand", 0.25)
"""

AWAY = """\
import os
import mlflow
mlflow.log_metric("by_hand", 0.25 + int(os.environ["RANK"]))
"""

BOWL = """\
import time
from distrain_nb import log_metrics
for step in range(5):
    log_metrics({"val/loss": (x - 0.3) ** 2 + 1 / (step + 1)}, step=step)
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("mlflow"))
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def tracked_home(home: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose runs are mirrored; the process that does so ends with the test."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setattr("distrain_nb.tracking.starting.ANSWER_WITHIN_S", 240.0)
    yield home
    if found := owner():
        os.kill(found.pid, signal.SIGKILL)


def kill_the_process() -> None:
    found = owner()
    if found is not None:
        os.kill(found.pid, signal.SIGKILL)
        assert eventually(lambda: not found.alive)


def runs_there(client: MlflowClient, experiment: str) -> list[TheirRun]:
    found = client.get_experiment_by_name(experiment)
    return list(client.search_runs([found.experiment_id])) if found else []


def theirs(client: MlflowClient, run: Run) -> TheirRun:
    tracked = Tracked.read(run.folder)
    assert tracked is not None and tracked.run, tracked
    return client.get_run(tracked.run)


def all_mirrored() -> bool:
    catch_up()
    return not pending()


def test_four_ranks_are_one_run_with_every_number(tracked_home: Path, server: Server) -> None:
    run = api.submit(
        FOUR, ranks_per_replica=4, experiment="digits", name="four", param="lr=0.1",
        result="weights", tag="good, old", wait=True,
    )  # fmt: skip
    assert eventually(all_mirrored, 120)
    client = server.client
    (found,) = runs_there(client, "digits")
    assert found.info.run_id == theirs(client, run).info.run_id
    here, there = points_here(run.folder), points_there(client, found)
    by_hand = [point for point in there if point[0] == "by_hand"]
    assert [repr(0.25)] == [point[3] for point in by_hand]  # rank 0's alone
    assert there - Counter(by_hand) == here
    assert {name for name, *_ in here} == {
        "odd name_", "never", "high", *(f"rank-{rank}/train/loss" for rank in range(4))
    }  # fmt: skip
    assert len(here) == 5 * 30 + 2
    assert found.data.params == {"lr": "0.1", "own": "yes", "layers": "3"}
    assert found.data.tags["distrain.layout"] == run.line
    assert found.data.tags["distrain.tags"] == "good, old"
    assert (found.info.run_name, found.info.status) == ("four", "FINISHED")
    assert found.info.start_time == round(run.created * 1000)
    assert found.info.end_time == round(run.status.times["succeeded"] * 1000)
    kept = {each.path for each in client.list_artifacts(found.info.run_id)}
    assert {"program", "results"} <= kept
    code = client.download_artifacts(found.info.run_id, "program/main.py")
    assert Path(code).read_text() == (run.folder / "program" / "main.py").read_text()
    assert run.links["MLflow"].endswith(f"/runs/{found.info.run_id}")
    assert list((run.folder / "mlflow").iterdir())  # what rank 1 told MLflow


def test_what_autolog_finds_is_in_the_same_run(tracked_home: Path, server: Server) -> None:
    run = api.submit(AUTOLOG, ranks_per_replica=2, experiment="found", param="C=0.5", wait=True)
    assert eventually(all_mirrored, 120)
    (found,) = runs_there(server.client, "found")
    assert found.info.run_id == theirs(server.client, run).info.run_id
    assert found.data.params["C"] == "0.5" and found.data.params["max_iter"] == "77"
    assert found.data.metrics["training_score"] == 1 and found.data.metrics["ours"] == 0.25
    assert found.info.status == "FINISHED"
    assert list((run.folder / "mlflow").iterdir()) == [run.folder / "mlflow" / "1"]


@pytest.mark.stands_for("MLflow")
def test_a_cell_that_names_an_experiment_has_its_run_there_and_ours_beside_it(
    tracked_home: Path, server: Server
) -> None:
    run = api.submit(OWN, ranks_per_replica=2, experiment="ours", wait=True)
    assert eventually(all_mirrored, 120)
    (mine,) = runs_there(server.client, "mine")
    assert mine.data.metrics == {"by_hand": 0.25} and mine.info.status == "FINISHED"
    (ours,) = runs_there(server.client, "ours")
    assert ours.info.run_id == theirs(server.client, run).info.run_id
    assert ours.data.metrics == {"ours": 0.5} and ours.info.status == "FINISHED"


def test_rank_0_of_a_job_in_a_cloud_goes_on_with_its_run(
    tracked_home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its request says is what the worker of its container is told."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.by_another_name)
    monkeypatch.setattr("distrain_nb.backends.remote.backend.start_carrier", lambda folder: None)
    place = {"on": "vertex", "rehearse": "", "primary": "n1-standard-4", "service_account": "a@b.c"}
    run = api.submit(AWAY, experiment="away", **place)
    text = told_in(Submission.read(run.folder).spec["request"])
    ran = in_a_container(run, text)
    assert ran.returncode == 0, ran
    assert "does not give rank 0" not in ran.stderr
    (found,) = runs_there(server.client, "away")
    assert found.info.run_id == theirs(server.client, run).info.run_id
    assert found.data.metrics == {"by_hand": 0.25}

    nobody = text.replace(server.by_another_name, "http://127.0.0.1:9")
    ran = in_a_container(run, nobody)
    assert ran.returncode == 0, ran
    assert "MLflow at http://127.0.0.1:9 does not give rank 0 its run" in ran.stderr
    assert len(runs_there(server.client, "away")) == 1


def told_in(request: object) -> str:
    """What the variable says by which the containers of a request learn of the run."""
    (text,) = set(re.findall(rf"'{TRACKED_VARIABLE}', 'value': '([^']*)'", str(request)))
    return str(text)


def test_each_trial_of_a_tuning_job_goes_on_with_its_run(
    tracked_home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request stands for all of them, so that rank 0 looks for the run of its trial."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.by_another_name)
    monkeypatch.setattr("distrain_nb.study.starting.start_process", lambda folder: None)
    place = {"on": "vertex", "rehearse": "", "primary": "n1-standard-4", "service_account": "a@b.c"}
    found = study.tune(
        AWAY.replace("0.25", "x"), tune="x=0.0..1.0", goal="min:by_hand", trials=3, name="tuned",
        **place,
    )  # fmt: skip
    text = told_in(Submission.read(found.folder).spec["request"])
    said = [ServiceTrial(n, {"x": n / 4}, "running", job=f"jobs/{n}") for n in (2, 1)]
    ServiceTrials(found.file, found.folder).keep(said)
    for trial in found.all_trials():
        arguments = (f"--x={trial.params['x']}",)
        ran = in_a_container(found, text, *arguments, CLOUD_ML_TRIAL_ID=str(trial.number))
        assert ran.returncode == 0, ran
        own = theirs(server.client, trial.run)
        assert own.data.metrics == {"by_hand": trial.number / 4}
        assert own.data.tags["mlflow.parentRunId"] == Tracked.read(found.folder).run
    assert len(runs_there(server.client, "tuned")) == 3


def in_a_container(
    run: Run | study.Study, told: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A replica of two ranks."""
    own = {"DISTRAIN_PROGRAM": str(run.folder / "program"), "DISTRAIN_RANKS": "2"}
    environment = {**os.environ, **own, **variables, TRACKED_VARIABLE: told}
    del environment["MLFLOW_TRACKING_URI"]
    command = [sys.executable, "-m", "distrain_nb.worker", *arguments]
    return subprocess.run(
        command, env=environment, cwd=run.folder, capture_output=True, text=True, timeout=300
    )


def test_a_study_is_caught_up_with_after_server_and_process_were_killed(
    tracked_home: Path, server: Server
) -> None:
    """Nobody waits for it. Its 20 trials are nested below it, and each point is there once."""
    found = study.tune(
        BOWL, tune="x=0.0..1.0", goal="min:val/loss", trials=20, parallel=2, name="bowl",
        search="random,seed=1",
    )  # fmt: skip

    def ended() -> list[object]:
        return [trial for trial in found.all_trials() if trial.state.final]

    assert eventually(lambda: len(ended()) >= 3, 240)
    kill_the_process()
    assert eventually(lambda: len(ended()) >= 6, 240)
    server.stop()
    assert eventually(lambda: len(ended()) >= 10, 240)
    kill_the_process()
    found.wait(480)
    assert eventually(lambda: any(map(_note, found.all_trials())), 120)
    assert found.trials["state"].tolist() == ["succeeded"] * 20
    server.start()
    api.runs()
    assert eventually(lambda: all(_is_begun(trial.run) for trial in found.all_trials()), 120)
    kill_the_process()
    assert eventually(all_mirrored, 240)

    client = server.client
    there = runs_there(client, "bowl")
    (parent,) = [run for run in there if "mlflow.parentRunId" not in run.data.tags]
    nested = {run.info.run_id: run for run in there if run is not parent}
    assert len(nested) == 20
    assert {run.data.tags["mlflow.parentRunId"] for run in nested.values()} == {parent.info.run_id}
    assert parent.info.status == "FINISHED" and parent.data.params["trials"] == "20"
    for trial in found.all_trials():
        run = nested[theirs(client, trial.run).info.run_id]
        assert points_there(client, run) == points_here(trial.run.folder)
        assert sum(points_there(client, run).values()) == 5
        assert float(run.data.params["x"]) == trial.params["x"]
        assert run.info.status == "FINISHED" and run.info.run_name == trial.run.name
        assert not _note(trial)


def _note(trial: StudyTrial) -> str:
    """What keeps its run from being up to date; whoever asks sees to it that somebody tries."""
    catch_up()
    found = Tracked.read(trial.run.folder)
    return found.note if found else ""


def _is_begun(run: Run) -> bool:
    found = Tracked.read(run.folder)
    return found is not None and bool(found.run)
