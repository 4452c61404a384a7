"""How a service is asked, what it says of a job that waits, and the end of waiting for its log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.carried import HEARD_WITHIN_S, CarriedRun
from distrain_nb.backends.remote.carrier import phase_of, waiting_reason
from distrain_nb.backends.remote.service import LogEntry, Observed, Pace
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.worker.files.status import State, Status, request_cancel
from tests.conftest import eventually

from .folder_service import LINES, FolderBackend, FolderService, carry_in_a_process, texts

FOREVER = 3600.0


@pytest.fixture
def writes_for_ever(service: FolderService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job has ended, and a machine that the service has lost goes on with its part."""
    (service.folder / "reached").write_text(str(LINES))

    def log(
        self: FolderService, job: str, cursor: dict[str, Any], *, last: bool
    ) -> tuple[Sequence[LogEntry], dict[str, Any]]:
        number = cursor.get("next", 0)
        return [LogEntry(1e9, "primary", 0, f"[rank 0] line {number}")], {"next": number + 1}

    monkeypatch.setattr(FolderService, "log", log)


def test_a_log_that_is_whole_at_the_end_is_read_once(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.folder / "reached").write_text(str(LINES))
    monkeypatch.setattr(FolderBackend, "pace", Pace(look=FOREVER, quiet=0.0))
    carrier.carry(run)
    assert Status.read(run).state is State.SUCCEEDED
    assert texts(run, 0) == [f"line {n}" for n in range(0, LINES, 2)]
    assert not any("last lines" in stretch.phase for stretch in Status.read(run).trail)


def test_waiting_for_the_last_lines_has_an_end(
    run: Path, writes_for_ever: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderBackend, "pace", Pace(look=0.01, quiet=FOREVER, longest=0.1))
    carrier.carry(run)
    status = Status.read(run)
    assert status.state is State.SUCCEEDED
    assert "last lines of the log: still being written 0.1 s after the job had ended" in status.note
    assert "fetches them again" in status.note


def test_a_cancel_ends_the_waiting_for_the_last_lines(
    run: Path, writes_for_ever: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderBackend, "pace", Pace(look=0.01, quiet=FOREVER, longest=FOREVER))
    process = carry_in_a_process(run)
    assert eventually(lambda: Status.read(run).phase == "waiting for the last lines")
    assert eventually(lambda: len(texts(run, 0)) > 1)
    request_cancel(run)
    process.join()
    assert Status.read(run).state is State.SUCCEEDED, "the job had ended before"


def test_lines_that_come_after_a_cancelled_job_are_waited_for(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.folder / "reached").write_text("700")
    (service.folder / "held").touch()
    request_cancel(run)
    service.create({})
    Journal(request={}, sent=time.time(), job="jobs/1").write(run)
    log = FolderService.log

    def late(self: FolderService, job: str, cursor: Any, *, last: bool) -> Any:
        return ([], cursor) if last else log(self, job, cursor, last=last)

    monkeypatch.setattr(FolderService, "log", late)
    carrier.carry(run)
    assert Status.read(run).state is State.CANCELLED
    assert texts(run, 0) == [f"line {n}" for n in range(0, 700, 2)]


def test_a_cancel_is_heard_between_two_looks(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderBackend, "pace", Pace(look=FOREVER, quiet=0.0))
    (service.folder / "held").touch()
    process = carry_in_a_process(run)
    assert eventually(lambda: Status.read(run).state is State.RUNNING)
    request_cancel(run)
    assert eventually(lambda: (service.folder / "cancelled").exists())
    request_cancel(run)  # the next look is an hour away
    process.join()
    assert Status.read(run).state is State.CANCELLED


@pytest.mark.parametrize(
    ("look_s", "least_s", "most_s"),
    [(5.0, 4.0, 4.9), (0.05, 0.004, 0.006)],
    ids=["a short look", "a long look"],
)
def test_a_look_counts_as_a_part_of_the_rest(
    look_s: float,
    least_s: float,
    most_s: float,
    run: Path,
    service: FolderService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []
    log = FolderService.log

    def slow(self: FolderService, job: str, cursor: Any, *, last: bool) -> Any:
        time.sleep(0.1)
        return log(self, job, cursor, last=last)

    def rest(self: CarriedRun, seconds: float, *more: Any) -> bool:
        rests.append(seconds)
        return False

    (service.folder / "reached").write_text(str(LINES - 200))
    monkeypatch.setattr(FolderBackend, "pace", Pace(look=look_s, quiet=0.0))
    monkeypatch.setattr(FolderService, "log", slow)
    monkeypatch.setattr(CarriedRun, "rest", rest)
    carrier.carry(run)
    assert rests
    assert all(least_s <= rest <= most_s for rest in rests), rests


def test_what_failed_first_is_said_before_a_job_s_lines_are_read(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    (service.folder / "reached").write_text(str(LINES - 200))
    observe, log = FolderService.observe, FolderService.log

    def failing(self: FolderService, job: str) -> Observed:
        return replace(observe(self, job), reason="rank 1 failed: ValueError")

    def noted(self: FolderService, job: str, cursor: Any, *, last: bool) -> Any:
        notes.append(Status.read(run).note)
        return log(self, job, cursor, last=last)

    monkeypatch.setattr(FolderService, "observe", failing)
    monkeypatch.setattr(FolderService, "log", noted)
    carrier.carry(run)
    assert notes[0] == "rank 1 failed: ValueError"


def test_a_request_from_before_a_rest_ends_it_at_once(run: Path) -> None:
    carried = CarriedRun(run)
    before = carried.last_request()
    request_cancel(run)
    assert carried.rest(FOREVER, before)
    assert not carried.rest(HEARD_WITHIN_S / 10), "a request is heard once"


def test_what_a_job_waits_for_is_in_words(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    (service.folder / "held").touch()
    start = time.time() + 600
    said = Observed(State.QUEUED, "waiting for nodes", reason="3 jobs before it", expected=start)
    monkeypatch.setattr(FolderService, "observe", lambda self, job: said)
    process = carry_in_a_process(run)
    clock = time.strftime("%H:%M", time.localtime(start))
    note = f"3 jobs before it; expected to start at {clock}"
    assert eventually(lambda: Status.read(run).state is State.QUEUED)
    status = Status.read(run)
    assert (status.phase, status.note) == ("waiting for nodes", note)
    process.kill()
    process.join()


def test_an_attempt_and_a_start_in_words() -> None:
    assert phase_of(Observed(State.RUNNING, "running", attempt=2), State.RUNNING) == (
        "running, attempt 2"
    )
    assert phase_of(Observed(State.RUNNING), State.RUNNING) == "running"
    late = Observed(State.QUEUED, expected=time.time() + 3 * 24 * 3600)
    assert " on " in waiting_reason(late)
    assert waiting_reason(Observed(State.QUEUED, expected=time.time() - 5)) == ""
