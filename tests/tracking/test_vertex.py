"""Runs in Vertex AI Experiments, as Google's own SDK reads them back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform
from google.cloud.aiplatform import initializer
from google.cloud.aiplatform.metadata import metadata

from distrain_nb import api, study
from distrain_nb.backends.remote.rehearsal_services import publish_services
from distrain_nb.config import Config
from distrain_nb.places.vertex.experiments import ExperimentsPlace
from distrain_nb.places.vertex.tracking import VERTEX
from distrain_nb.run import Run
from distrain_nb.tracking import catch_up
from distrain_nb.tracking.request import pending
from distrain_nb.tracking.runs import place_request
from distrain_nb.tracking.starting import begin, owner
from distrain_nb.worker.files.tracked import Tracked
from tests.conftest import eventually
from tests.tracking.experiments import PROJECT, REGION, experiments, sdk
from tests.tracking.ports import free_port

pytestmark = pytest.mark.slow

TWO = """\
import os
from distrain_nb import log_metrics
rank = int(os.environ["RANK"])
for step in range(30):
    log_metrics({"val/loss": lr / (step + 1), "odd name!": step % 7}, step=step)
    log_metrics({"train/loss": lr + rank}, step=step, every_rank=True)
log_metrics({"never": float("nan")}, step=0)
"""


BOWL = """\
from distrain_nb import log_metrics
for step in range(5):
    log_metrics({"val/loss": (x - 0.3) ** 2 + 1 / (step + 1)}, step=step)
"""


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def tracked_home(home: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose runs go to that port; the process that sees to it ends with the test."""
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", PROJECT)
    monkeypatch.setenv("GOOGLE_CLOUD_REGION", REGION)
    Config(tracking="vertex").save()
    yield home
    kill_the_process()


def kill_the_process() -> None:
    found = owner(VERTEX)
    if found is not None:
        os.kill(found.pid, signal.SIGKILL)
        assert eventually(lambda: not found.alive)


def log_of(home: Path) -> str:
    return (home / VERTEX.folder / "tracking.log").read_text()


def all_mirrored() -> bool:
    catch_up()
    return not pending(VERTEX)


def test_a_run_is_there_with_every_number(tracked_home: Path, port: int) -> None:
    """And the SDK of whoever started it has its own settings still."""
    mine = initializer.global_config
    with experiments(tracked_home / "experiments.db", port) as address:
        run = api.submit(
            TWO, ranks_per_replica=2, experiment="My digits", name="two", wait=True,
            param=["lr=0.1", "kind='a'"],
        )  # fmt: skip
        assert eventually(all_mirrored, 120), log_of(tracked_home)
        assert initializer.global_config is mine
        with sdk(address):
            frame = aiplatform.get_experiment_df("my-digits")
            series = aiplatform.ExperimentRun("two", "my-digits").get_time_series_data_frame()
    (row,) = frame.to_dict("records")
    assert (row["run_name"], row["state"]) == ("two", "COMPLETE")
    (ours,) = api.runs("My digits").frame.to_dict("records")
    columns = [name for name in ours if name.startswith(("param.", "metric.", "time_series"))]
    assert {"param.lr", "metric.val/loss", "time_series_metric.val/loss"} <= set(columns)
    for name in columns:
        theirs = row[name.replace("series_metric.train", "series_metric.rank-0/train")]
        assert theirs == ours[name] or (pd.isna(theirs) and pd.isna(ours[name])), name
    here = run.metrics().query("series == ''").set_index("step")
    there = series.set_index("step")
    for name in ("val/loss", "odd name!"):
        assert there[name].dropna().tolist() == here[name].tolist()
        assert len(there[name].dropna()) == 30
    assert there["rank-1/train/loss"].dropna().tolist() == [pytest.approx(1.1)] * 30
    assert run.links["Vertex AI Experiments"].endswith(f"my-digits-two?project={PROJECT}")


def test_a_study_is_caught_up_with_when_the_service_is_there(tracked_home: Path, port: int) -> None:
    """Its trials are runs by their names, but for a name that somebody else has."""
    kept = tracked_home / "experiments.db"
    with experiments(kept) as address, sdk(address):
        aiplatform.ExperimentRun.create("bowl-2", experiment=aiplatform.Experiment.create("bowl"))
    found = study.tune(
        BOWL, tune="x=0.0..1.0", goal="min:val/loss", trials=3, parallel=1, name="bowl",
        search="random,seed=1", wait=True,
    )  # fmt: skip
    assert eventually(
        lambda: catch_up() or all(note_of(trial.run) for trial in found.all_trials()), 120
    )
    kill_the_process()
    with experiments(kept, port) as address:
        assert eventually(all_mirrored, 240), log_of(tracked_home)
        with sdk(address):
            rows = aiplatform.get_experiment_df("bowl").to_dict("records")
    by_name = {row["run_name"]: row for row in rows}
    assert by_name.pop("bowl-2")["state"] == "RUNNING"
    assert sorted(name[:6] for name in by_name) == ["bowl-1", "bowl-2", "bowl-3"]
    for trial in found.all_trials():
        (row,) = (row for name, row in by_name.items() if name.startswith(trial.run.name))
        assert (row["state"], row["param.x"]) == ("COMPLETE", trial.params["x"])
        last = (trial.params["x"] - 0.3) ** 2 + 0.2
        assert row["metric.val/loss"] == row["time_series_metric.val/loss"] == pytest.approx(last)
        assert not note_of(trial.run)


def note_of(run: Run) -> str:
    """What keeps it from being up to date."""
    found = Tracked.read(run.folder, VERTEX.tracked_file)
    return found.note if found else ""


def test_a_rehearsed_run_is_with_its_rehearsal_or_nowhere(home: Path) -> None:
    first, second = (
        api.submit(BOWL, experiment="digits", name=name, param="x=0.5", wait=True)
        for name in ("first", "second")
    )
    place = str(ExperimentsPlace(PROJECT, REGION, rehearsed=True))
    requests = [
        place_request(run.record, Config(), {}, place, here=True) for run in (first, second)
    ]
    assert requests[0] is not None and requests[1] is not None
    try:
        with experiments(home / "kept.db") as address, sdk(address):
            with publish_services(first.folder, {"aiplatform": address}):
                assert not begin(requests[0], waits=False)
                assert eventually(lambda: not pending(VERTEX), 120), log_of(home)
            assert not begin(requests[1], waits=False)
            assert eventually(lambda: not pending(VERTEX), 120), log_of(home)
            (row,) = aiplatform.get_experiment_df("digits").to_dict("records")
    finally:
        kill_the_process()
    assert (row["run_name"], row["state"], row["param.x"]) == ("first", "COMPLETE", 0.5)
    assert row["metric.val/loss"] == pytest.approx(0.24)
    assert "Vertex AI Experiments" not in first.links and not note_of(first)
    assert "the rehearsal ended before" in note_of(second)


def test_what_a_notebook_tells_by_itself(tmp_path: Path) -> None:
    """As Google's own guides have it: the stand-ins take it, and give it back."""
    with experiments(tmp_path / "experiments.db") as address, sdk(address):
        config = initializer.global_config
        config.init(experiment="resnet")
        with aiplatform.start_run("ddp-4"):
            aiplatform.log_params({"batch_size": 64, "strategy": "ddp"})
            for step in (1, 2):
                aiplatform.log_time_series_metrics({"loss": 1 / step}, step=step)
            aiplatform.log_metrics({"epoch_s": 133.5})
        aiplatform.start_run("fsdp-4")
        aiplatform.end_run()
        frame = aiplatform.get_experiment_df().set_index("run_name")
        with pytest.raises(exceptions.AlreadyExists):
            aiplatform.ExperimentRun.create("ddp-4", experiment="resnet")
        with pytest.raises(exceptions.InvalidArgument, match="4 to 128"):
            aiplatform.Experiment.create("Odd name")
        metadata._experiment_tracker.reset()
    assert frame.loc["ddp-4", "param.batch_size"] == 64
    assert frame.loc["ddp-4", "param.strategy"] == "ddp"
    assert frame.loc["ddp-4", "metric.epoch_s"] == 133.5
    assert frame.loc["ddp-4", "time_series_metric.loss"] == 0.5
    assert frame["state"].tolist() == ["COMPLETE", "COMPLETE"]
