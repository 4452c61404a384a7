"""What the end of a run makes of its trial, by what the run has reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from distrain_nb.study.endings import TrialMetrics, trial_end
from distrain_nb.study.files import TrialFile, TrialState
from distrain_nb.tuning.spec import Double, Goal, StudySpec
from distrain_nb.worker.files.cause import ORPHANED, Cause
from distrain_nb.worker.files.folder import EVENTS_FOLDER, HYPERTUNE_FILE
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.metrics.writer import append

if TYPE_CHECKING:
    from pathlib import Path

SPEC = StudySpec((Double("lr", 0.0, 1.0),), (Goal("loss", "min"),))
REPORT = '{"timestamp": %s, "trial": "1", "global_step": %s, "loss": %s}\n'
TRIAL = TrialFile(1, {"lr": 0.5})
STOPPED = replace(TRIAL, state=TrialState.STOPPING, why="worse than the median")
SUCCEEDED = Status(State.SUCCEEDED)
FAILED = Status(State.FAILED, error="ValueError: mine\nin line 1")
LOST = Status(State.FAILED, error="it was lost", cause=Cause(ORPHANED))


@pytest.fixture
def reported(tmp_path: Path) -> TrialMetrics:
    """The metrics of a run that has reported a loss by event files, step 2 twice."""
    for step, loss in ((1, 1.5), (2, 0.5), (2, 0.25)):
        append(tmp_path / EVENTS_FOLDER, step, {"loss": loss, "accuracy": 0.5})
    metrics = TrialMetrics(tmp_path)
    assert metrics.read() is True
    assert metrics.read() is False
    return metrics


def test_what_was_reported_counts_once_a_step(reported: TrialMetrics) -> None:
    assert reported.values("loss") == [1.5, 0.25]
    assert reported.curve("loss", 100)[["step", "value"]].tolist() == [(1, 1.5), (2, 0.25)]
    assert sorted(reported.names) == ["accuracy", "loss"]
    assert reported.values("f1") == [] and len(reported.curve("f1", 9)) == 0


def test_a_program_may_report_by_cloudml_hypertune(tmp_path: Path) -> None:
    metrics = TrialMetrics(tmp_path)
    assert not metrics.read() and metrics.names == []
    file = tmp_path / HYPERTUNE_FILE.format(0)
    file.write_text(REPORT % (1, 1, 0.5))
    assert metrics.read() and metrics.values("loss") == [0.5]
    file.write_text(REPORT % (2, 2, 0.25))  # its library keeps the last only
    assert metrics.read() and metrics.values("loss") == [0.5, 0.25]
    assert metrics.curve("loss", 9)["value"].tolist() == [0.5, 0.25]
    assert not metrics.read()


@pytest.mark.parametrize(
    ("trial", "status", "state", "why", "again"),
    [
        (TRIAL, SUCCEEDED, TrialState.SUCCEEDED, "", False),
        (STOPPED, SUCCEEDED, TrialState.SUCCEEDED, "", False),
        (TRIAL, FAILED, TrialState.FAILED, "ValueError: mine", False),
        (STOPPED, FAILED, TrialState.FAILED, "ValueError: mine", False),
        (TRIAL, LOST, TrialState.FAILED, "it was lost", True),
        (STOPPED, LOST, TrialState.STOPPED, "worse than the median", False),
        (STOPPED, Status(State.CANCELLED), TrialState.STOPPED, "worse than the median", False),
        (TRIAL, Status(State.CANCELLED), TrialState.CANCELLED, "its run was cancelled", False),
        (TRIAL, Status(State.CANCELLED, error="by Ada"), TrialState.CANCELLED, "by Ada", False),
    ],
)
def test_how_a_run_ended_decides_what_its_trial_is(
    reported: TrialMetrics,
    trial: TrialFile,
    status: Status,
    state: TrialState,
    why: str,
    again: bool,
) -> None:
    end = trial_end(trial, status, reported, SPEC)
    assert (end.state, end.why, end.again) == (state, why, again)
    assert end.goals == {"loss": 0.25}


def test_a_trial_without_a_usable_goal_has_failed(tmp_path: Path, reported: TrialMetrics) -> None:
    f1 = replace(SPEC, goals=(Goal("f1", "max"),))
    end = trial_end(TRIAL, SUCCEEDED, reported, f1)
    assert end.state is TrialState.FAILED and not end.goals
    assert "never reported f1" in end.why and "it reported loss, accuracy" in end.why
    assert trial_end(STOPPED, Status(State.CANCELLED), reported, f1).state is TrialState.CANCELLED
    nothing = TrialMetrics(tmp_path / "nothing")
    assert "no metric at all" in trial_end(TRIAL, SUCCEEDED, nothing, SPEC).why
    append(tmp_path / EVENTS_FOLDER, 3, {"loss": float("nan")})
    reported.read()
    end = trial_end(TRIAL, SUCCEEDED, reported, SPEC)
    assert (end.state, end.why) == (TrialState.FAILED, "its loss ended as nan")
    end = trial_end(STOPPED, Status(State.CANCELLED), reported, SPEC)
    assert end.state is TrialState.CANCELLED
    best = replace(SPEC, measurement="best")
    assert trial_end(TRIAL, SUCCEEDED, reported, best).state is TrialState.SUCCEEDED
