"""Carrying a run of a service, through deaths of its carrier and failures of the service."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.links import read_links
from distrain_nb.backends.remote.service import Denied, Observed, Stored
from distrain_nb.run.metrics.events import EventFolder, Key, scalars
from distrain_nb.worker.files.status import Owner, State, Status, request_cancel
from tests.conftest import eventually

from .folder_service import LINES, FolderService, carry_in_a_process, new_run, texts

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_lines_events_and_results_come_to_the_folder(run: Path, service: FolderService) -> None:
    carrier.carry(run, {"service": "here"})
    status = Status.read(run)
    assert status.state is State.SUCCEEDED
    for rank in (0, 1):
        assert texts(run, rank) == [f"line {n}" for n in range(rank, LINES, 2)]
    assert texts(run, 2) == ["the image has been pulled"]
    assert [process.label for process in status.processes] == ["rank 0", "rank 1", "workers 0"]
    events = EventFolder(run / "tensorboard")
    events.read()
    steps = events.points(Key("", "loss"))["step"]
    assert list(steps) == list(range(100, LINES + 1, 100))
    assert (run / "results" / "index.json").read_text() == "{}"
    assert read_links(run) == {"job": "https://console.example/jobs/1"}


def test_a_carrier_that_is_killed_again_and_again_loses_and_repeats_nothing(
    run: Path, service: FolderService
) -> None:
    kills = 0
    while not Status.read(run).state.final:
        process = carry_in_a_process(run)
        process.join(0.4)
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            kills += 1
        process.join()
    assert kills > 1
    for rank in (0, 1):
        assert texts(run, rank) == [f"line {n}" for n in range(rank, LINES, 2)]
    seen = scalars(run / "tensorboard")[Key("", "seen")]
    assert list(seen["step"]) == list(range(0, LINES, 5))
    assert list(seen["wall_time"]) == [1e9 + n for n in range(0, LINES, 5)]
    assert len((service.folder / "requests").read_text().splitlines()) == 1


def test_one_process_carries_a_run(run: Path, service: FolderService) -> None:
    (service.folder / "held").touch()
    first = carry_in_a_process(run)
    assert eventually(lambda: Status.read(run).state is State.RUNNING)
    second = carry_in_a_process(run)
    second.join()
    assert first.is_alive()
    (service.folder / "held").unlink()
    first.join()
    assert texts(run, 0) == [f"line {n}" for n in range(0, LINES, 2)]


def test_cancel_is_handed_on(run: Path, service: FolderService) -> None:
    (service.folder / "held").touch()
    process = carry_in_a_process(run)
    assert eventually(lambda: Status.read(run).state is State.RUNNING)
    request_cancel(run)
    process.join()
    assert Status.read(run).state is State.CANCELLED
    assert (service.folder / "cancelled").exists()


def test_cancelled_before_the_service_has_it(run: Path, service: FolderService) -> None:
    request_cancel(run)
    carrier.carry(run, {"service": "here"})
    assert Status.read(run).state is State.CANCELLED
    assert not (service.folder / "requests").exists()


def test_a_run_that_is_waited_for_ends_with_its_kernel(
    tmp_path: Path, service: FolderService
) -> None:
    run = new_run(tmp_path / "waited", service, Owner(os.getpid(), "another start"))
    carrier.carry(run, {"service": "here"})
    assert Status.read(run).state is State.CANCELLED


def test_the_services_reason_is_the_error(run: Path, service: FolderService) -> None:
    (service.folder / "broken").touch()
    carrier.carry(run, {"service": "here"})
    status = Status.read(run)
    assert status.state is State.FAILED
    assert status.error == "The replica workerpool1-0 exited with status 1."


def test_a_failure_is_named_before_the_last_lines_are_there(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large job these may take minutes."""
    noted, log_of = [], FolderService.log

    def log(self: FolderService, job: str, cursor: dict[str, Any], *, last: bool) -> Any:
        noted.append(Status.read(run).note)
        return log_of(self, job, cursor, last=last)

    monkeypatch.setattr(FolderService, "log", log)
    (service.folder / "broken").touch()
    carrier.carry(run, {"service": "here"})
    assert set(noted) == {"The replica workerpool1-0 exited with status 1."}
    assert Status.read(run).note == ""


def test_a_service_that_is_away_for_a_while(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, away = FolderService.observe, [OSError("no route to host")] * 2

    def sometimes(self: FolderService, job: str) -> Observed:
        if away:
            raise away.pop()
        return observe(self, job)

    monkeypatch.setattr(FolderService, "observe", sometimes)
    carrier.carry(run, {"service": "here"})
    assert Status.read(run).state is State.SUCCEEDED
    assert texts(run, 0) == [f"line {n}" for n in range(0, LINES, 2)]


def test_what_the_user_may_not_have_is_told_once_and_done_without(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: FolderService, *asked: Any, **more: Any) -> Any:
        raise Denied("Can't read the log: you lack a permission.")

    monkeypatch.setattr(FolderService, "log", denied)
    carrier.carry(run, {"service": "here"})
    status = Status.read(run)
    assert status.state is State.SUCCEEDED
    assert status.processes[-1].label == "service"
    assert texts(run, 2) == ["Can't read the log: you lack a permission."]


def test_objects_outside_of_the_folder_are_refused(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderService.objects

    def found(self: FolderService, below: str) -> Sequence[Stored]:
        return [Stored("results/../../stolen", 2), *objects(self, below)]

    monkeypatch.setattr(FolderService, "objects", found)
    carrier.carry(run, {"service": "here"})
    status = Status.read(run)
    assert (status.state, status.note) == (State.SUCCEEDED, "")
    assert not (run.parent / "stolen").exists()
    assert (run / "results" / "index.json").read_text() == "{}"
    (told,) = texts(run, [process.label for process in status.processes].index("service"))
    assert "stolen" in told and "outside" in told
