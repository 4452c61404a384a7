"""Numbers that `log_metrics` was given come back as they were, also where float32 has no room."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.study.endings import TrialMetrics, trial_end
from distrain_nb.study.files import TrialState
from distrain_nb.worker.files.folder import EVENTS_FOLDER
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.metrics import event_format, writer
from tests.study.stored import stored_study, stored_trial

NUMBERS = [0.1, 1 + 1e-9, 1 + 2e-9, 1e308, -1e308, 5e-324, 0.5, -0.0, 3.0, math.inf, -math.inf]


def read(folder: Path, tag: str) -> list[float]:
    events = EventFolder(folder)
    events.read()
    (key,) = (key for key in events.keys if key.tag == tag)
    return [float(point["value"]) for point in events.points(key)]


@pytest.mark.parametrize("times", [1, 40])
def test_numbers_come_back_as_they_were(tmp_path: Path, times: int) -> None:
    """One by one, and of many records at once."""
    numbers = NUMBERS * times
    for step, number in enumerate(numbers):
        writer.append(tmp_path, step, {"loss": number, "half": 0.5})
    assert read(tmp_path, "loss") == numbers
    assert read(tmp_path, "half") == [0.5] * len(numbers)


def test_no_number_stays_none(tmp_path: Path) -> None:
    writer.append(tmp_path, 0, {"loss": math.nan})
    assert math.isnan(read(tmp_path, "loss")[0])


def test_other_readers_find_the_number_that_they_know(tmp_path: Path) -> None:
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    event = event_pb2.Event.FromString(event_format.event(1.0, 3, {"loss": 0.1, "acc": 1e308}))
    values = {value.tag: value.simple_value for value in event.summary.value}
    assert values == {"loss": pytest.approx(0.1), "acc": math.inf}


def test_a_trial_whose_goal_is_large_succeeds_and_close_ones_are_apart(tmp_path: Path) -> None:
    study, goals = stored_study(tmp_path, 0, 9), []
    for number, value in enumerate([1e308, 1 + 1e-9, 1 + 2e-9], 1):
        folder = tmp_path / str(number)
        writer.append(folder / EVENTS_FOLDER, 1, {"val/loss": value})
        metrics = TrialMetrics(folder)
        metrics.read()
        trial = replace(stored_trial(number, 0.0), state=TrialState.RUNNING, goals={})
        ending = trial_end(trial, Status(State.SUCCEEDED), metrics, study.spec)
        assert ending.state is TrialState.SUCCEEDED
        replace(trial, state=ending.state, goals=dict(ending.goals)).write(study.folder)
        goals.append(ending.goals["val/loss"])
    assert goals == [1e308, 1 + 1e-9, 1 + 2e-9]
    assert study.best.number == 2
