"""What a job left behind is fetched with patience, and again when somebody asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.remote import carrier, log_writer, output_files
from distrain_nb.backends.remote.collector import RESTARTING
from distrain_nb.backends.remote.service import Denied, LogEntry, Stored
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.run.metrics.events import Key, scalars
from distrain_nb.worker.files.status import State, Status

from .folder_service import LINES, FolderBackend, FolderService, texts

HERE = {"service": "here"}
RESULT = "results/index.json"

_read, _log, _objects = FolderService.read, FolderService.log, FolderService.objects


def test_a_dropped_connection_is_no_failure(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = [ConnectionResetError("dropped")] * 3

    def read(self: FolderService, name: str, start: int, end: int) -> bytes:
        if name == RESULT and dropped:
            raise dropped.pop()
        return _read(self, name, start, end)

    monkeypatch.setattr(FolderService, "read", read)
    monkeypatch.setattr(FolderBackend, "pace", replace(FolderBackend.pace, fetch=60.0))
    carrier.carry(run, HERE)
    status = Status.read(run)
    assert (status.state, status.note, dropped) == (State.SUCCEEDED, "", [])
    assert (run / RESULT).read_text() == "{}"


@pytest.mark.parametrize("wrong", [ConnectionResetError("dropped"), Denied("no permission")])
def test_what_stays_away_is_missing_until_it_is_asked_for_again(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch, wrong: Exception
) -> None:
    ended: list[bool] = []

    def objects(self: FolderService, below: str) -> Any:
        if ended:
            raise wrong
        return _objects(self, below)

    def log(self: FolderService, job: str, cursor: Any, *, last: bool) -> Any:
        if last:
            ended.append(True)
            raise wrong
        return _log(self, job, cursor, last=last)

    with monkeypatch.context() as patch:
        patch.setattr(FolderService, "objects", objects)
        patch.setattr(FolderService, "log", log)
        carrier.carry(run, HERE)
    status = Status.read(run)
    assert status.state is State.SUCCEEDED
    assert "`%distrain attach run` fetches them again" in status.note
    assert list(Journal.read(run).missing) == ["last lines of the log", "event files", "results"]
    assert not (run / RESULT).exists()
    carrier.carry(run, HERE)
    again = Status.read(run)
    assert (again.state, again.note, again.times) == (State.SUCCEEDED, "", status.times)
    assert not Journal.read(run).missing
    assert (run / RESULT).read_text() == "{}"
    assert texts(run, 0) == [f"line {n}" for n in range(0, LINES, 2)]


def test_an_event_file_here_is_the_one_there_as_it_grows_and_is_written_anew(
    run: Path, service: FolderService
) -> None:
    there = service.folder / "tensorboard" / "events.out.tfevents.1"
    there.parent.mkdir()
    for written in (b"one", b"one", b"one two", b"new", b"new file"):
        there.write_bytes(written)
        output_files.events(service, run)
        assert (run / "tensorboard" / there.name).read_bytes() == written


def test_half_a_result_has_not_its_name(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    promised = [Stored(RESULT, 10)]
    monkeypatch.setattr(FolderService, "objects", lambda self, below: promised)
    carrier.carry(run, HERE)
    status = Status.read(run)
    assert status.state is State.SUCCEEDED
    assert "results/index.json ends after 2 of 10 bytes" in status.note
    assert not (run / RESULT).exists()


def test_a_carrier_that_comes_after_the_end_changes_nothing(
    run: Path, service: FolderService
) -> None:
    carrier.carry(run, HERE)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    carrier.carry(run, HERE)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_lines_that_could_not_be_written_whole_are_written_once(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, failures = log_writer.Points.add, [OSError(28, "No space left on device")] * 3

    def full(self: log_writer.Points, entries: Any, size: int) -> int:
        if entries and failures:
            raise failures.pop()
        return add(self, entries, size)

    monkeypatch.setattr(log_writer.Points, "add", full)
    carrier.carry(run, HERE)
    assert not failures
    for rank in (0, 1):
        assert texts(run, rank) == [f"line {n}" for n in range(rank, LINES, 2)]
    assert list(scalars(run / "tensorboard")[Key("", "seen")]["step"]) == list(range(0, LINES, 5))


def test_a_start_after_a_lost_machine_is_in_the_trail(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that starts one replica anew says so in the log; the job goes on running."""
    told = "Replica worker 0 was preempted."

    def log(self: FolderService, job: str, cursor: Any, *, last: bool) -> Any:
        entries, following = _log(self, job, cursor, last=last)
        lost = [LogEntry(1e9, "service", 0, told)] if not cursor else []
        return [*entries, *lost], following

    monkeypatch.setattr(FolderService, "log", log)
    carrier.carry(run, HERE)
    phases = [each.phase for each in Status.read(run).trail]
    assert phases[phases.index(RESTARTING) + 1] == "running"
