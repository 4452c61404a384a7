"""`attach` without a name: what the user started last, among runs, studies and their trials."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

import distrain_nb
from distrain_nb.errors import RunNotFound
from distrain_nb.run import Run, Store
from distrain_nb.study import Study
from distrain_nb.study.files import STUDY_FILE
from tests.study.stored import stored_study


def run_of(key: str = "") -> Run:
    handle: dict[str, object] = {"study": key, "trial": 1} if key else {}
    return Run(Store().add("a-run", "local", "", "", {}, handle))


def study_from(home: Path, created: float, number: int = 1) -> Study:
    study = stored_study(home, 0, 1, number=number)
    replace(study.file, created=created).write(study.folder)
    return Study(study.folder)


def last() -> tuple[type, int]:
    thing = distrain_nb.attach()
    assert thing.id == distrain_nb.attach("last").id
    return type(thing), thing.id


def test_it_is_the_newest_of_runs_and_studies_and_no_trial(home: Path) -> None:
    with pytest.raises(RunNotFound, match="There are none"):
        distrain_nb.attach()
    run = run_of()
    assert last() == (Run, run.id)
    study = study_from(home, time.time())
    assert last() == (Study, study.id)
    run_of(study.file.key)
    assert last() == (Study, study.id)
    newer = run_of()
    assert last() == (Run, newer.id)
    run_of(study.file.key)  # the study has gone on
    assert last() == (Run, newer.id)


def test_a_study_that_cannot_be_read_hides_no_other(home: Path) -> None:
    study = study_from(home, time.time(), 1)
    damaged = study_from(home, time.time(), 2)
    (damaged.folder / STUDY_FILE).write_text("{")
    assert last() == (Study, study.id)


def test_a_trial_whose_study_is_gone_is_better_than_nothing(home: Path) -> None:
    study = study_from(home, time.time())
    trial = run_of(study.file.key)
    shutil.rmtree(study.folder)
    assert last() == (Run, trial.id)
