"""A study in a notebook: its table below the cell, and an interrupt."""

from __future__ import annotations

import pytest

from distrain_nb import study
from distrain_nb.worker.files.status import State
from tests.conftest import eventually
from tests.kernels import Kernel

pytestmark = pytest.mark.slow

CELL = """\
%%distrain --tune x=0.0..1.0 --goal min:loss --trials 9 --parallel 2 --name interrupted
import time
from distrain_nb import log_metrics
log_metrics(loss=x)
time.sleep(600)
"""


def test_an_interrupt_stops_the_study_and_its_trials(nb: Kernel) -> None:
    sent = nb.send(CELL, on_a_page=True)
    assert eventually(lambda: [t.steps for s in study.studies() for t in s.all_trials()] == [1, 1])
    nb.interrupt()
    left = nb.outcome(sent)
    found = study.find_study("interrupted")
    assert left.error == "RunCancelled: study 1 (interrupted) was stopped"
    assert found.state is State.CANCELLED
    assert [str(trial.state) for trial in found.all_trials()] == ["stopped", "stopped"]
    assert all(trial.run.state is State.CANCELLED for trial in found.all_trials())
    first, *_, last = (shown["text/html"] for shown in left.displays if "text/html" in shown)
    assert "starting, 0 of 9 trials" in first
    assert "cancelled, 2 of 9 trials; best loss" in last and last.count("<tr ") == 2
    table = nb.run("%distrain compare interrupted").displays[-1]["text/plain"]
    assert "interrupted-1 #1" in table and "interrupted-2 #2" in table
    values = [f"{trial.params['x']:.6g}" for trial in found.all_trials()]
    assert next(line for line in table.split("\n") if "--param x" in line).split()[2:] == values
