"""A study on the rehearsed SageMaker, from its cell to its best trial."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import rehearsal, study
from distrain_nb.backends.remote import studies
from distrain_nb.places.sagemaker.client import client
from distrain_nb.places.sagemaker.study_service import StudyService
from distrain_nb.study import Study
from distrain_nb.study.service import ServiceTrials
from distrain_nb.worker.files.status import State
from tests.conftest import eventually

from .jobs import PLACE

pytestmark = pytest.mark.slow

# A bowl whose lowest point is at 0.3, seen better with each step.
BOWL = """\
import os, sys
from distrain_nb import log_metrics
for step in range(3):
    log_metrics({"val/loss": (x - 0.3) ** 2 + 1 / (step + 1)}, step=step)
weights = [x, width, sorted(sys.argv[1:]), os.environ["CLOUD_ML_TRIAL_ID"]]
"""
ENDLESS = """\
import time
from distrain_nb import log_metrics
log_metrics(loss=x)
time.sleep(600)
"""
TUNED = {"tune": ["x=0.0..1.0", "width=16|32"], "goal": "min:val/loss"}


@pytest.fixture(scope="module")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No container engine answers, so replicas start in a fraction of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path_factory.mktemp('docker') / 'nobody'}")
        patch.setenv("DISTRAIN_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def tuned(code: str, base: str, **options: Any) -> Study:
    place = {**PLACE, "region": "us-west-2", "workers": "ml.m5.xlarge", "base": base}
    return study.tune(code, on="sagemaker", rehearse="", **{**place, **options})


def test_one_cell_finds_the_same_region_here_and_there(bubblewrap: None, base: str) -> None:
    wanted: dict[str, Any] = {**TUNED, "trials": 6, "parallel": 2, "search": "random,seed=1"}
    there = tuned(BOWL, base, **wanted, result="weights", name="there")
    here = study.tune(BOWL, **wanted, name="here").wait(240)
    assert there.wait(400).state is State.SUCCEEDED
    for found in (here, there):
        assert set(found.trials["state"]) == {"succeeded"} and len(found.trials) == 6
        assert set(found.trials["steps"]) == {3}
        assert abs(found.best.params["x"] - 0.3) < 0.1, found.trials
        losses = (found.trials["x"] - 0.3) ** 2 + 1 / 3
        assert found.trials["val/loss"].to_numpy() == pytest.approx(losses.to_numpy(), abs=1e-6)
    best = there.best
    x, width, words, number = best.results["weights"]
    assert (x, width, number) == (best.params["x"], best.params["width"], str(best.number))
    assert words == [f"--width={width}", f"--x={x!r}"]
    assert best.run.name == f"there-{best.number}" and best.run.experiment == "there"
    assert list(best.run.metrics()["step"]) == [0, 1, 2]
    loss = best.goals["val/loss"]
    assert any(line.text == f"step 2  val/loss {loss!r}" for line in best.run.lines(rank=0))


def test_a_trial_is_stopped_then_the_study_by_the_service_s_word(
    bubblewrap: None, base: str
) -> None:
    found = tuned(ENDLESS, base, tune="x=1|2|3", goal="min:loss", trials=3, search="random,seed=2")
    assert eventually(lambda: [t for t in found.all_trials() if t.run_id and t.goals], within=120)
    found.stop(1)
    assert eventually(lambda: found[1].state.final and len(found.all_trials()) == 2, within=120)
    assert str(found[1].state) == "stopped"
    assert eventually(lambda: found[2].goals, within=120)
    found.cancel()
    assert eventually(lambda: found.state.final, within=120)
    assert found.state is State.CANCELLED
    assert all(trial.run.state is State.CANCELLED for trial in found.all_trials())
    assert [str(trial.state) for trial in found.all_trials()] == ["stopped"] * 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_while_it_submits_leaves_one_tuning_job(
    when: str, bubblewrap: None, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distrain_nb.study.starting.start_process", lambda folder: None)
    found = tuned(BOWL, base, **TUNED, trials=2, parallel=2, name=f"killed {when}")
    with rehearsal.sagemaker(buckets=["my-bucket"]) as endpoints:
        assert carried(found.folder, endpoints, killed=when) == -signal.SIGKILL
        assert not found.all_trials()
        assert carried(found.folder, endpoints) == 0
        jobs = client("sagemaker", "us-west-2", endpoints)
        names = jobs.list_hyper_parameter_tuning_jobs()["HyperParameterTuningJobSummaries"]
    assert len(names) == 1
    assert found.trials["state"].tolist() == ["succeeded"] * 2
    assert sorted(trial.run.state for trial in found.all_trials()) == [State.SUCCEEDED] * 2


def carried(folder: Path, endpoints: Any, killed: str = "") -> int:
    """Carry a study in a process of its own; how that has ended."""
    process = multiprocessing.get_context("spawn").Process(
        target=carry, args=(folder, endpoints, killed)
    )
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def carry(folder: Path, endpoints: Any, killed: str) -> None:
    create = StudyService.create

    def dies(self: StudyService, request: Any) -> str:
        if killed == "after":
            create(self, request)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    if killed:
        StudyService.create = dies  # type: ignore[method-assign]
    found = Study(folder)
    studies.carry_study(folder, ServiceTrials(found.file, folder), endpoints)
