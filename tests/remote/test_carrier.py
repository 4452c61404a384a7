"""Carrying a run of a service: here one that is a folder on disk, and can be made to fail."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.service import Denied, Entry, Observed, Stored
from distrain_nb.backends.remote.submission import Submission, read_links
from distrain_nb.image import Progress
from distrain_nb.run.events import EventFolder, Key, scalars
from distrain_nb.run.log import LogReader
from distrain_nb.worker import metrics
from distrain_nb.worker.disk import replace_file
from distrain_nb.worker.status import Owner, Process, State, Status, request_cancel
from tests.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LINES = 3000
PROCESSES = (
    Process(0, "rank 0", "primary", 0, 0),
    Process(1, "rank 1", "workers", 0, 1),
)


@dataclass(frozen=True)
class FolderService:
    """A job is a file `request.json`; each look lets it go on by lines, unless it is `held`."""

    folder: Path

    @property
    def output(self) -> FolderService:
        return self

    def stage(self, program: Path, tell: Any) -> Mapping[str, Any]:
        tell(Progress("staging", 1, 2))
        return {"main": (program / "main.py").read_text()}

    def create(self, request: Mapping[str, Any]) -> str:
        with (self.folder / "requests").open("a") as file:
            file.write(json.dumps(request) + "\n")
        return "jobs/1"

    def observe(self, job: str) -> Observed:
        if (self.folder / "cancelled").exists():
            return Observed(State.CANCELLED)
        if (self.folder / "broken").exists():
            return Observed(State.FAILED, error="The replica workerpool1-0 exited with status 1.")
        pace = 0 if (self.folder / "held").exists() else 100
        reached = int((self.folder / "reached").read_text() or 0) + pace
        replace_file(self.folder / "reached", str(min(reached, LINES)).encode())
        metrics.append(self.folder / "tensorboard", reached, {"loss": 1.0})
        return Observed(State.SUCCEEDED if reached >= LINES else State.RUNNING, "running")

    def log(
        self, job: str, cursor: dict[str, Any], *, last: bool
    ) -> tuple[Sequence[Entry], dict[str, Any]]:
        first = cursor.get("next", 0)
        until = min(first + 70, int((self.folder / "reached").read_text()))
        if last:
            until = int((self.folder / "reached").read_text())
        entries = [
            Entry(
                time=1e9 + n,
                role="workers" if n % 2 else "primary",
                replica=0,
                text=f"[rank {n % 2}] line {n}",
                points=(("seen", n, n / 2),) if n % 5 == 0 else (),
            )
            for n in range(first, until)
        ]
        if first == 0 and until:
            entries.insert(0, Entry(1e9, "workers", 0, "the image has been pulled"))
        return entries, {"next": until}

    def cancel(self, job: str) -> None:
        (self.folder / "cancelled").touch()

    def links(self, job: str) -> Mapping[str, str]:
        return {"job": f"https://console.example/{job}"}

    def objects(self, below: str) -> Sequence[Stored]:
        found = [path for path in (self.folder / below).rglob("*") if path.is_file()]
        return [Stored(str(p.relative_to(self.folder)), p.stat().st_size) for p in sorted(found)]

    def read(self, name: str, start: int, end: int) -> bytes:
        with (self.folder / name).open("rb") as file:
            file.seek(start)
            return file.read(end - start)


class FolderBackend:
    def service(self, told: Mapping[str, Any], endpoints: Mapping[str, str]) -> FolderService:
        return FolderService(Path(told["folder"]))


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderService:
    monkeypatch.setattr(carrier, "find", lambda name: FolderBackend())
    monkeypatch.setattr(carrier, "LOOK_SOONER_S", 0.02)
    monkeypatch.setattr(carrier, "QUIET_SOONER_S", 0.2)
    folder = tmp_path / "service"
    (folder / "results").mkdir(parents=True)
    (folder / "results" / "index.json").write_text("{}")
    (folder / "reached").write_text("0")
    return FolderService(folder)


@pytest.fixture
def run(tmp_path: Path, service: FolderService) -> Path:
    return new_run(tmp_path / "run", service)


def new_run(folder: Path, service: FolderService, kernel: Owner | None = None) -> Path:
    (folder / "program").mkdir(parents=True)
    (folder / "program" / "main.py").write_text("print('hello')")
    Submission("folder", {"folder": str(service.folder)}, PROCESSES, kernel, "").write(folder)
    Status(State.STARTING).enter(State.STARTING).write(folder)
    return folder


def carry_in_a_process(run: Path) -> multiprocessing.Process:
    process = multiprocessing.get_context("fork").Process(
        target=carrier.carry, args=(run, {"service": "here"})
    )
    process.start()
    return process


def texts(run: Path, process: int) -> list[str]:
    return [line.text for line in LogReader(run) if line.process == process]


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
    assert status.processes[-1].label == "service 0"
    assert texts(run, 2) == ["Can't read the log: you lack a permission."]


def test_objects_outside_of_the_folder_are_refused(
    run: Path, service: FolderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = [Stored("results/../../stolen", 2)]
    monkeypatch.setattr(FolderService, "objects", lambda self, below: outside)
    carrier.carry(run, {"service": "here"})
    assert "outside" in Status.read(run).error
    assert not (run.parent / "stolen").exists()
