"""A study waits on a full disk, and goes on when there is room."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb import study
from distrain_nb.errors import StoreError
from distrain_nb.study import Study, full_disk
from distrain_nb.study import __main__ as process
from distrain_nb.study import process as owning
from distrain_nb.study import study as handle
from distrain_nb.study.files import TrialFile
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import Owner, State
from tests.disks import fill, small_disk

CELL = "from distrain_nb import log_metrics\nlog_metrics(loss=x)"


@pytest.fixture(name="disk")
def home_on_a_small_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """DISTRAIN_HOME on a file system of 16 MiB, of which this process owns the studies."""
    monkeypatch.setattr("distrain_nb.study.starting.start_process", lambda folder: None)
    monkeypatch.setattr(handle, "start_process", lambda *_: None)
    before = signal.getsignal(signal.SIGHUP)
    with small_disk(home, "16m") as disk:
        yield disk
    signal.signal(signal.SIGHUP, before)


def take_inodes(disk: Path) -> None:
    """Leave no room for another file, however small."""
    room = os.statvfs(disk)
    options = f"remount,nr_inodes={room.f_files - room.f_ffree}"
    subprocess.run(["mount", "-o", options, disk], check=True)


def tuned() -> Study:
    return study.tune(CELL, tune="x=1..10", goal="min:loss", trials=3)


def test_a_study_goes_on_when_its_disk_has_room_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was about to write of a trial."""
    write, states = TrialFile.write, set()

    def writing(trial: TrialFile, folder: Path) -> None:
        """Write on a full disk, once in each state of the second trial."""
        if trial.number == 2 and trial.state not in states:
            states.add(trial.state)
            fill(disk)
        write(trial, folder)

    monkeypatch.setattr(TrialFile, "write", writing)
    waited, notes = [], []

    def wait(folder: Path, stop: Callable[[], None]) -> None:
        """Make room once somebody waits for it."""
        waited.append(folder)
        notes.append(found.status.note)
        (disk / "filler").unlink()
        full_disk.wait_for_room(folder, stop)

    monkeypatch.setattr(process, "wait_for_room", wait)
    found = tuned()
    process.main(found.folder)
    assert found.state is State.SUCCEEDED, found.status.error
    assert found.trials["state"].tolist() == ["succeeded"] * 3
    assert set(waited) == {found.folder}
    assert set(notes) == {
        f"the disk of {found.folder} is full: the study goes on when there is room"
    }
    assert found.status.note == "" and not [*found.folder.glob("reserve-*")]


def test_what_is_asked_of_a_study_on_a_full_disk_is_refused_with_the_way_out(disk: Path) -> None:
    found = tuned()
    replace(found.status, supervisor=Owner.of(os.getpid())).write(found.folder)
    TrialFile(1, {"x": 1}).write(found.folder)
    take_inodes(disk)
    for ask in (lambda: found.more(1), lambda: found.stop(1), found.cancel):
        with pytest.raises(StoreError, match=r"1 can't be changed: No space left .* makes room"):
            ask()
    assert found.requested_trials == 3


def test_trials_are_stopped_while_a_study_waits_for_room(disk: Path) -> None:
    (disk / CANCEL_FILE).touch()
    filler = fill(disk)
    full_disk.wait_for_room(disk, filler.unlink)
    assert full_disk.has_room(disk) and not filler.exists()


def test_a_trial_that_the_disk_has_no_room_for_is_begun_later(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tuned()
    begin = owning.TrialLauncher.begin
    full = iter([True, True])

    def beginning(*words: object) -> None:
        """Begin on a full disk, twice."""
        if next(full, False):
            fill(disk)
        begin(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(owning.TrialLauncher, "begin", beginning)
    monkeypatch.setattr(process, "wait_for_room", lambda *_: (disk / "filler").unlink())
    process.main(found.folder)
    assert found.trials["state"].tolist() == ["succeeded"] * 3, found.status.error


def test_a_study_that_fails_leaves_no_trial_running(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_after(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(owning.StudyProcess, "_look_after", look_after)
    found = tuned()
    process.main(found.folder)
    assert found.status.error == "RuntimeError: boom"
    assert found.trials["state"].tolist() == ["cancelled"]
