"""A clock that goes back an hour holds nothing up for an hour."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.backends.plugins import find
from distrain_nb.backends.remote import backend
from distrain_nb.backends.remote.log_ordering import HeldLine, Lateness, settle
from distrain_nb.backends.remote.service import Gone, Observed
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.worker.files.folder import LOCK_FILE
from distrain_nb.worker.files.status import Owner, State, Status

from .folder_service import FolderService, carry_in_a_process

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend

HOUR_S = 3600.0
DEAD = Owner(os.getpid(), "another start")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs for which a carrier is started."""
    folders: list[Path] = []
    monkeypatch.setattr(backend, "start_carrier", folders.append)
    return folders


def lost_its_carrier(run: Path, ago_s: float) -> AnyBackend:
    """The backend of a run whose carrier was started so long ago, and killed."""
    replace(Status.read(run), supervisor=DEAD).write(run)
    (run / LOCK_FILE).touch()
    moment = time.time() - ago_s
    os.utime(run / LOCK_FILE, (moment, moment))
    return find("vertex")


@pytest.mark.parametrize("ago_s", [60.0, 60.0 - HOUR_S])
def test_a_carrier_that_was_killed_is_started_again(
    run: Path, started: list[Path], ago_s: float
) -> None:
    remote = lost_its_carrier(run, ago_s)
    remote.status({}, run)
    assert started == [run]
    remote.cancel({}, run)
    assert started == [run, run]


@pytest.mark.parametrize("ago_s", [1.0, -1.0])
def test_a_carrier_that_may_still_come_is_waited_for(
    run: Path, started: list[Path], ago_s: float
) -> None:
    lost_its_carrier(run, ago_s).status({}, run)
    assert not started


def carried_within(run: Path, seconds: float) -> Status:
    process = carry_in_a_process(run)
    process.join(seconds)
    process.kill()
    process.join()
    return Status.read(run)


def test_a_job_that_somebody_deleted_ends_its_run(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def observe(self: FolderService, job: str) -> Observed:
        raise Gone("the service doesn't have the job any more")

    monkeypatch.setattr(FolderService, "observe", observe)
    Journal({}, sent=time.time() + HOUR_S, job="jobs/1").write(run)
    assert carried_within(run, 20.0).state is State.FAILED


def test_a_request_that_never_arrived_is_sent_again(run: Path, service: FolderService) -> None:
    Journal({}, sent=time.time() + HOUR_S).write(run)
    assert carried_within(run, 30.0).state is State.SUCCEEDED


def test_lines_that_were_held_back_are_given() -> None:
    now, lateness, cursor = time.time(), Lateness(settle=5.0), dict[str, Any]()
    line = HeldLine(int(1e18), "1", now, "workers", "the last one for now")
    for later_s, texts in ((1.0, []), (1.0 - HOUR_S, [line.text])):
        given, cursor = settle([line], cursor, now + later_s, lateness, last=False)
        assert [each.text for each in given] == texts
