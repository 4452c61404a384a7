"""A job is sent once, and a run is cancelled only if the service has none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.service import Gone, Observed, Unanswered
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.status import State, Status, request_cancel

from .folder_service import PACE, FolderBackend, FolderService, carry_in_a_process

HERE = {"service": "here"}

_create = FolderService.create


def requests(service: FolderService) -> int:
    path = service.folder / "requests"
    return len(path.read_text().splitlines()) if path.exists() else 0


def die_when_asked(
    patch: pytest.MonkeyPatch, run: Path, before: Callable[[FolderService, Any], object]
) -> None:
    """A carrier's process dies in `create`."""

    def create(self: FolderService, request: Mapping[str, Any]) -> str:
        before(self, request)
        os._exit(1)

    with patch.context() as inside:
        inside.setattr(FolderService, "create", create)
        carry_in_a_process(run).join()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_carrier_that_died_sending_leaves_one_job(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    die_when_asked(monkeypatch, run, _create)
    if stopped:
        request_cancel(run)
    carrier.carry(run, HERE)
    assert requests(service) == 1
    assert (service.folder / "cancelled").exists() == stopped
    assert Status.read(run).state is (State.CANCELLED if stopped else State.SUCCEEDED)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_request_may_arrive_when_its_sender_has_died(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    die_when_asked(monkeypatch, run, lambda *_: None)
    if stopped:
        request_cancel(run)
    looks = []

    def find(self: FolderService, request: Any) -> str:
        looks.append(request)
        return _create(self, request) if len(looks) == 3 else ""

    monkeypatch.setattr(FolderService, "find", find)
    monkeypatch.setattr(FolderBackend, "pace", replace(PACE, arrival=3600.0))
    carrier.carry(run, HERE)
    assert len(looks) == 3 and requests(service) == 1
    assert Status.read(run).state is (State.CANCELLED if stopped else State.SUCCEEDED)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_carrier_that_died_before_it_had_sent(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    die_when_asked(monkeypatch, run, lambda *_: None)
    if stopped:
        request_cancel(run)
    carrier.carry(run, HERE)
    assert requests(service) == (0 if stopped else 1)
    assert Status.read(run).state is (State.CANCELLED if stopped else State.SUCCEEDED)


def test_a_service_that_cannot_be_asked_ends_no_run(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop is pressed, and for a while nobody can say whether there is a job."""
    die_when_asked(monkeypatch, run, _create)
    request_cancel(run)
    find, away = FolderService.find, [OSError("no route to host")] * 3
    notes = []

    def sometimes(self: FolderService, request: Any) -> str:
        if away:
            notes.append(Status.read(run).note)
            raise away.pop()
        return find(self, request)

    monkeypatch.setattr(FolderService, "find", sometimes)
    carrier.carry(run, HERE)
    assert "can't ask whether the service has the job" in notes[-1]
    assert (service.folder / "cancelled").exists()
    assert Status.read(run).state is State.CANCELLED


def test_a_lost_answer_is_no_failure(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has arrived, twice it has not."""
    lost = [False, False, True]

    def create(self: FolderService, request: Any) -> str:
        if lost.pop(0):
            _create(self, request)
        raise Unanswered("the connection was closed")

    monkeypatch.setattr(FolderService, "create", create)
    carrier.carry(run, HERE)
    assert not lost and requests(service) == 1
    assert Status.read(run).state is State.SUCCEEDED


@pytest.mark.parametrize("wrong", [DistrainError("no quota"), Unanswered("500"), KeyError("x")])
def test_a_job_that_is_not_taken(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, wrong: Exception
) -> None:
    def create(self: FolderService, request: Any) -> str:
        raise wrong

    monkeypatch.setattr(FolderService, "create", create)
    carrier.carry(run, HERE)
    status = Status.read(run)
    assert status.state is State.FAILED
    assert str(wrong) in status.error
    assert not Journal.read(run).sent


def test_a_job_that_goes_on_is_not_called_failed(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_when_asked(monkeypatch, run, _create)
    with monkeypatch.context() as patch:
        patch.setattr(carrier, "find", lambda name: [][0])
        carrier.carry(run, HERE)
    status = Status.read(run)
    assert not status.state.final
    assert "IndexError" in status.note
    carrier.carry(run, HERE)
    assert Status.read(run).state is State.SUCCEEDED
    assert requests(service) == 1


@pytest.mark.parametrize("stopped", [False, True])
def test_a_job_that_somebody_deleted(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    def observe(self: FolderService, job: str) -> Observed:
        raise Gone("the service doesn't have the job any more")

    monkeypatch.setattr(FolderService, "observe", observe)
    die_when_asked(monkeypatch, run, _create)
    if stopped:
        request_cancel(run)
    carrier.carry(run, HERE)
    status = Status.read(run)
    assert status.state is (State.CANCELLED if stopped else State.FAILED)
    assert status.error == "the service doesn't have the job any more"
