"""A study that can't be read hides no other, and can be deleted."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from distrain_nb import study
from distrain_nb.errors import RunNotReady, RunUnreadable, StudyNotFound
from distrain_nb.magics.lines import _named, run_line
from distrain_nb.run import Store
from distrain_nb.run.numbered_folders import MADE_WITHIN_S
from distrain_nb.study import Study
from distrain_nb.study.listing import delete, studies_ended_before
from distrain_nb.worker.files.status import State
from tests.study.stored import stored_study


def looping(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def missing(folder: Path, ago: float = 2 * MADE_WITHIN_S) -> None:
    (folder / "study.json").unlink()
    old = time.time() - ago
    os.utime(folder, (old, old))


def folder_is_a_loop(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder.name)
    old = time.time() - 2 * MADE_WITHIN_S
    os.utime(folder, (old, old), follow_symlinks=False)


ODD: dict[str, Callable[[Path], object]] = {
    "empty study.json": lambda folder: (folder / "study.json").write_text(""),
    "deep study.json": lambda folder: (folder / "study.json").write_text("[" * 100_000),
    "looping study.json": lambda folder: looping(folder / "study.json"),
    "no study.json": missing,
    "no study.json, and the clock an hour back": lambda folder: missing(folder, -3600.0),
    "empty status.json": lambda folder: (folder / "status.json").write_text(""),
    "looping status.json": lambda folder: looping(folder / "status.json"),
    "no status.json": lambda folder: (folder / "status.json").unlink(),
    "its folder is a loop": folder_is_a_loop,
}


@pytest.fixture
def good(home: Path) -> Study:
    return stored_study(home, trials=2, wanted=2, state=State.SUCCEEDED, number=1)


def line(*words: str) -> Any:
    return run_line(list(words), SimpleNamespace(user_ns={}))  # type: ignore[arg-type]


@pytest.mark.parametrize("spoil", ODD.values(), ids=ODD)
def test_it_is_a_line_that_says_so_and_can_be_deleted(
    home: Path, good: Study, spoil: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = stored_study(home, trials=1, wanted=1, state=State.SUCCEEDED, number=2)
    spoil(odd.folder)
    line("tune")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("study 2 can't be read: ")
    assert first.endswith("; `%distrain tune 2 --delete`")
    assert second.startswith("study 1 (sweep): succeeded")
    with pytest.raises(RunUnreadable, match="study 2 can't be read: "):
        line("tune", "last")
    line("tune", "2", "--delete")
    assert "study 2 (s" in capsys.readouterr().out
    assert [each.id for each in study.studies()] == [good.id]
    assert not os.path.lexists(odd.folder)


@pytest.mark.parametrize("spoil", ODD.values(), ids=ODD)
def test_others_are_found_behind_it(
    home: Path, good: Study, spoil: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(stored_study(home, trials=1, wanted=1, number=2).folder)
    assert study.find_study(1).id == good.id
    with pytest.raises(StudyNotFound, match=r"no study 'swoop'; did you mean sweep\?"):
        study.find_study("swoop")
    assert list(studies_ended_before(time.time())) == []
    line("tune", "1", "--delete")
    assert capsys.readouterr().out == "study 1 (sweep) is deleted, with 2 trials\n"


def test_a_damaged_trial_keeps_nobody_from_deleting_its_study(
    home: Path, good: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    (good.folder / "trials" / "1.json").write_text("")
    line("tune", "sweep", "--delete")
    assert capsys.readouterr().out == "study 1 (sweep) is deleted\n"
    assert not good.folder.exists()


def test_runs_of_one_by_name_are_compared_though_a_newer_one_is_odd(
    home: Path, good: Study
) -> None:
    ODD["empty study.json"](stored_study(home, trials=1, wanted=1, number=2).folder)
    runs = [Store(home).add("", "local", "", "").id for _ in range(2)]
    assert [run.id for run in _named("sweep")] == runs


def test_one_that_goes_on_is_stopped_first_though_its_file_is_damaged(home: Path) -> None:
    running = stored_study(home, trials=1, wanted=2)
    ODD["empty study.json"](running.folder)
    with pytest.raises(RunNotReady, match="study 1 is running: stop it first"):
        delete(Study(running.folder))


def test_one_that_is_being_started_is_not_there_yet(home: Path) -> None:
    """Its file is written last."""
    (stored_study(home, trials=0, wanted=1).folder / "study.json").unlink()
    assert study.studies() == []
