"""More trials are asked for: each that was asked for is counted, and none that wasn't."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from distrain_nb.study import Study
from distrain_nb.study import study as handle
from distrain_nb.study.files import TRIALS_FOLDER, StudyFile, TrialFile, TrialState
from distrain_nb.study.listing import new_folder
from distrain_nb.worker.files.status import Owner, State, Status

pytestmark = pytest.mark.usefixtures("home")


def stored(state: State, trials: int) -> Study:
    """A study of eight trials that nobody owns but this process."""
    with new_folder() as (number, folder):
        pass
    spec: dict[str, object] = {"tune": ["x=0..9"], "goal": ["min:loss"], "trials": "8"}
    StudyFile(number, "bowl", "key", 1e9, spec).write(folder)
    Status(State.STARTING, supervisor=Owner.of(os.getpid())).enter(state, str(state)).write(folder)
    (folder / TRIALS_FOLDER).mkdir(exist_ok=True)
    for trial in range(1, trials + 1):
        TrialFile(trial, {"x": 1}, TrialState.SUCCEEDED).write(folder)
    return Study(folder)


def test_all_who_ask_at_once_are_counted() -> None:
    found = stored(State.RUNNING, 4)
    with ThreadPoolExecutor(4) as pool:
        for asked in [pool.submit(Study(found.folder).more, 1) for _ in range(20)]:
            asked.result()
    assert found.requested_trials == 28


@pytest.mark.parametrize(
    ("state", "wanted"), [(State.FAILED, 9), (State.SUCCEEDED, 9), (State.CANCELLED, 5)]
)
def test_more_of_a_study_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, state: State, wanted: int
) -> None:
    """Those that it still owed are wanted yet, unless somebody stopped it."""
    monkeypatch.setattr(handle, "start_process", lambda *_: None)
    found = stored(state, 4)
    found.more(1)
    assert found.requested_trials == wanted
