"""A study as its cell shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distrain_nb.saved.study_table import StudyTable, studies_text
from distrain_nb.study import Study
from distrain_nb.study.files import TrialFile, TrialState
from distrain_nb.study.summary import summary_of
from distrain_nb.study.trial import StudyTrial
from distrain_nb.worker.files.status import State

pytestmark = pytest.mark.slow


@pytest.mark.brief
def test_its_line_has_state_progress_and_the_best(bowl: Study) -> None:
    table = StudyTable(summary_of(bowl))
    best, line = bowl.best, table.summary.line
    assert line.startswith("study 1 (bowl): succeeded, 7 of 7 trials; best val/loss 0.2")
    assert f"in trial {best.number} (x=" in line
    assert studies_text([bowl]) == line
    lines = repr(table).splitlines()
    assert lines[1].split() == [
        "trial", "state", "x", "width", "optimizer", "momentum", "val/loss", "steps", "duration",
        "run",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[2:]] == ["7", "6", "5", "4", "3", "2", "1"]


@pytest.mark.brief
def test_the_page_marks_the_best_and_says_why_a_trial_was_stopped(bowl: Study) -> None:
    stopped = TrialFile(8, {"x": 0.5}, TrialState.STOPPED, why="worse than <others>")
    running = TrialFile(9, {"x": 0.5}, TrialState.RUNNING, begin=1.0)
    summary = summary_of(bowl)
    trials = (*summary.trials, StudyTrial(stopped), StudyTrial(running))
    table = StudyTable(replace(summary, trials=trials, state=State.RUNNING, wanted=20))
    page = table.still()
    assert page.count('class="dn-top"') == 1
    assert 'title="worse than &lt;others&gt;"' in page and "<others>" not in page
    assert '<progress value="8" max="20"' in page
    assert "8 of 20 trials; 1 running; best val/loss" in table.summary.line
    assert table.summary.line.endswith("left")


@pytest.mark.brief
def test_of_many_trials_the_newest_have_a_row(bowl: Study) -> None:
    many = tuple(StudyTrial(TrialFile(number, {"x": 1.0})) for number in range(1, 61))
    table = StudyTable(replace(summary_of(bowl), trials=many, front=()))
    assert len(table.rows) == 50 and table.rows[0][0] == "60"
    assert repr(table).endswith("10 older trials: see study.trials")
