"""The trials of a large study: read once, and compared without looking at every pair."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.run import Store
from distrain_nb.run.disk_usage import cleaning
from distrain_nb.study.answers import answer
from distrain_nb.study.files import TRIALS_FOLDER, TrialState
from distrain_nb.study.importances import Importances
from distrain_nb.study.listing import keys_of_unended, studies_ended_before
from distrain_nb.study.study import pareto_front
from distrain_nb.study.trial import StudyTrial
from distrain_nb.study.trial_reader import TrialReader
from distrain_nb.worker.files.status import State, Status
from tests.study.stored import stored_study, stored_trial

Scores = list[tuple[float, ...]]


def test_only_what_has_changed_is_read_again(tmp_path: Path) -> None:
    folder = stored_study(tmp_path, 3, 9).folder
    reader = TrialReader(folder)
    first = reader.read()
    assert [trial.number for trial in first] == [1, 2, 3]
    assert reader.read() is first
    changed = replace(stored_trial(2, 0.0), state=TrialState.FAILED, why="odd")
    changed.write(folder)
    stored_trial(10, 0.0).write(folder)
    (folder / TRIALS_FOLDER / "notes.json").write_text("no trial")
    second = reader.read()
    assert [trial.number for trial in second] == [1, 2, 3, 10]
    assert (second[0], second[2]) == (first[0], first[2])
    assert second[1].why == "odd"
    (folder / TRIALS_FOLDER / "3.json").unlink()
    assert [trial.number for trial in reader.read()] == [1, 2, 10]
    assert TrialReader(tmp_path).read() == ()


def test_a_trial_that_has_ended_is_looked_at_no_more_until_it_is_replaced(tmp_path: Path) -> None:
    folder = stored_study(tmp_path, 2, 9).folder
    going = replace(stored_trial(3, 0.0), state=TrialState.RUNNING, end=0.0)
    going.write(folder)
    reader, files = TrialReader(folder), folder / TRIALS_FOLDER
    first = reader.read()
    os.utime(files / "1.json", (1.0, 1.0))
    assert reader.read() is first
    os.utime(files / "3.json", (1.0, 1.0))  # as if its inode were that of the file before
    second = reader.read()
    assert second is not first and second[0] is first[0] and second[2] is not first[2]
    replace(stored_trial(1, 0.0), why="again").write(folder)
    assert reader.read()[0].why == "again"


def test_the_front_of_the_same_trials_is_found_once(tmp_path: Path) -> None:
    study = stored_study(tmp_path, 4, 9)
    trials = study.all_trials()
    front = study.front_of(trials)
    assert study.front_of(study.all_trials()) is front and front == tuple(study.front)
    study.front.clear()
    assert study.front_of(trials) == front
    best = replace(stored_trial(5, 0.0), state=TrialState.SUCCEEDED, goals={"val/loss": -1e9})
    best.write(study.folder)
    assert [trial.number for trial in study.front_of(study.all_trials())] == [5]


def test_importances_of_many_trials_wait_for_a_twentieth_more(tmp_path: Path) -> None:
    study, importances = stored_study(tmp_path, 1, 1), Importances()
    asked: list[int] = []
    importances._take = lambda spec, trials: asked.append(len(trials))  # type: ignore[method-assign]
    told = [StudyTrial(replace(stored_trial(1, 0.0), state=TrialState.SUCCEEDED, number=number))
            for number in range(1, 1100)]  # fmt: skip
    for count in (8, 12, 13, 1000, 1049, 1050):
        importances.of(study.spec, told[:count])
        if importances._thread:
            importances._thread.join()
    assert asked == [8, 13, 1000, 1050]


def test_a_page_that_has_seen_all_gets_no_trials_and_what_is_new_brings_them(
    tmp_path: Path,
) -> None:
    study, importances = stored_study(tmp_path, 5, 9), Importances()
    first = answer(study, importances, {})
    again = answer(study, importances, {"seen": str(first["seen"])})
    assert (again["seen"], again["charts"]) == (first["seen"], None)
    assert (again["summary"]["trials"], len(first["summary"]["trials"])) == (None, 5)  # type: ignore[index]
    going = replace(stored_trial(6, 0.0), state=TrialState.RUNNING, goals={}, end=0.0, steps=1)
    going.write(study.folder)
    seen = answer(study, importances, {"seen": str(first["seen"])})
    replace(going, steps=2).write(study.folder)
    last = answer(study, importances, {"seen": str(seen["seen"])})
    assert last["summary"]["trials"][5]["steps"] == 2  # type: ignore[index]


def pairwise(scores: Scores) -> set[tuple[float, ...]]:
    def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        return one != other and all(a >= b for a, b in zip(one, other, strict=True))

    return {own for own in scores if not any(beats(other, own) for other in scores)}


def test_the_front_is_what_looking_at_every_pair_gives() -> None:
    drawn = random.Random(7)
    for goals in (1, 2, 3, 4):
        for _ in range(200):
            count, values = drawn.randint(0, 12), drawn.choice([2, 4, 50])
            scores = [
                tuple(drawn.randint(0, values) * 1e-9 for _ in range(goals)) for _ in range(count)
            ]
            assert pareto_front(scores) == pairwise(scores)


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
def test_trials_of_a_study_that_goes_on_are_kept(home: Path, state: State) -> None:
    study = stored_study(home, 1, 3, state)
    store = Store(home)
    record = store.add("sweep-1", "local", "", "", handle={"study": study.file.key})
    Status(State.RUNNING).enter(State.SUCCEEDED, "succeeded").write(record.folder)
    time.sleep(0.01)
    parts = cleaning(0, studies_ended_before, keys_of_unended()).parts
    kept = not any(part.title.startswith("run ") for part in parts)
    assert kept == (state is State.RUNNING)


def test_a_trial_whose_clock_was_set_back_took_no_time(home: Path) -> None:
    study = stored_study(home, 1, 1)
    begin = study.file.created + 86_400
    replace(stored_trial(1, begin), end=begin - 3_600).write(study.folder)
    assert [trial.duration for trial in study.all_trials()] == [0.0]
