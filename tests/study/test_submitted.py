"""A study that is suggested here, with trials that a backend of another package runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distrain_nb import study as studies
from distrain_nb.errors import CheckFailed, DistrainError, OptionError
from distrain_nb.study import Study
from distrain_nb.study.listing import studies as listed
from distrain_nb.worker.files.folder import VARIABLES_FILE
from distrain_nb.worker.files.status import State
from tests import guests
from tests.conftest import eventually
from tests.processes import ForgetfulBackend, ProcessBackend

CELL = """
import os
from distrain_nb import log_metrics
print("trial", os.environ["CLOUD_ML_TRIAL_ID"], len(os.environ["TOKEN"]))
log_metrics({"loss": (x - 3) ** 2}, step=1)
"""


@pytest.fixture(autouse=True)
def known(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with guests.installed(ProcessBackend, tmp_path / "site", monkeypatch):
        yield


@pytest.fixture
def tuned(tmp_path: Path) -> Callable[..., Study]:
    def tune(**options: object) -> Study:
        given = {"tune": "x=1|2|3|4", "goal": "min:loss", "search": "grid", "parallel": 2}
        own = {"on": "processes", "jobs": str(tmp_path / "jobs"), "env": "TOKEN=hush"}
        return studies.tune(CELL, **{**given, **own, **options})

    return tune


def test_each_trial_is_a_run_that_is_submitted(tuned: Callable[..., Study], tmp_path: Path) -> None:
    study = tuned().wait()
    assert study.best.params == {"x": 3}
    assert sorted(trial.params["x"] for trial in study.all_trials()) == [1, 2, 3, 4]
    for trial in study.all_trials():
        assert f"trial {trial.number} 4" in str(trial.run.logs())
        assert trial.run.backend == "processes"
    assert len(list((tmp_path / "jobs").iterdir())) == 4, "a folder for each"
    # The study's process deletes them once it has written that it ended and nobody wants more.
    assert eventually(lambda: not (study.folder / VARIABLES_FILE).exists())
    assert not study.on_service and study.optuna.best_value == 0
    with pytest.raises(OptionError, match="other processes can't add trials to a study"):
        study.more(1)


def test_a_study_is_stopped_with_its_trials(tuned: Callable[..., Study]) -> None:
    study = tuned()
    study.cancel()
    with pytest.raises(DistrainError, match="was stopped"):
        study.wait()
    assert all(trial.state.final for trial in study.all_trials())
    assert {trial.run.state for trial in study.all_trials()} <= {State.CANCELLED, State.SUCCEEDED}


def test_what_is_suggested_here_has_the_rules_of_here(tuned: Callable[..., Study]) -> None:
    with pytest.raises(CheckFailed, match="other processes has no hyperband stopping"):
        tuned(stop="hyperband", search="random", trials=4)


def test_a_plan_that_hands_no_values_on_is_refused(
    tuned: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        guests.installed(ForgetfulBackend, tmp_path / "other", monkeypatch),
        pytest.raises(DistrainError, match="other processes passes no values to trials"),
    ):
        tuned(on="forgetful")
    assert not listed()
