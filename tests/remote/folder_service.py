"""A service that is a folder on disk, and can be made to fail."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote import carrier
from distrain_nb.backends.remote.backend import RemoteBackend
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.backends.remote.plan import RemotePlan
from distrain_nb.backends.remote.service import LogEntry, Observed, Pace, Stored
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.run.log.reader import LogReader
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner, Process, Progress, State, Status
from distrain_nb.worker.metrics import writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LINES = 3000
PACE = Pace(look=0.02, quiet=0.2, arrival=0.5, fetch=0.5)
PROCESSES = (
    Process(0, "rank 0", "primary", 0, 0),
    Process(1, "rank 1", "workers", 0, 1),
)


@dataclass(frozen=True)
class FolderService:
    """A job is a line of `requests`; each look lets it go on by lines, unless it is `held`. Its
    output can't be listed as long as it is `away`."""

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

    def find(self, request: Mapping[str, Any]) -> str:
        return "jobs/1" if (self.folder / "requests").exists() else ""

    def observe(self, job: str) -> Observed:
        if (self.folder / "cancelled").exists():
            return Observed(State.CANCELLED)
        if (self.folder / "broken").exists():
            return Observed(State.FAILED, error="The replica workerpool1-0 exited with status 1.")
        pace = 0 if (self.folder / "held").exists() else 100
        reached = int((self.folder / "reached").read_text() or 0) + pace
        replace_file(self.folder / "reached", str(min(reached, LINES)).encode())
        writer.append(self.folder / "tensorboard", reached, {"loss": 1.0})
        return Observed(State.SUCCEEDED if reached >= LINES else State.RUNNING, "running")

    def log(
        self, job: str, cursor: dict[str, Any], *, last: bool
    ) -> tuple[Sequence[LogEntry], dict[str, Any]]:
        first = cursor.get("next", 0)
        until = min(first + 70, int((self.folder / "reached").read_text()))
        if last:
            until = int((self.folder / "reached").read_text())
        entries = [
            LogEntry(
                time=1e9 + n,
                role="workers" if n % 2 else "primary",
                replica=0,
                text=f"[rank {n % 2}] line {n}",
                points=(("seen", n, n / 2),) if n % 5 == 0 else (),
            )
            for n in range(first, until)
        ]
        if first == 0 and until:
            entries.insert(0, LogEntry(1e9, "workers", 0, "the image has been pulled"))
        return entries, {"next": until}

    def cancel(self, job: str) -> None:
        (self.folder / "cancelled").touch()

    def links(self, job: str) -> Mapping[str, str]:
        return {"job": f"https://console.example/{job}"}

    def objects(self, below: str) -> Sequence[Stored]:
        if (self.folder / "away").exists():
            raise ConnectionResetError("dropped")
        found = [path for path in (self.folder / below).rglob("*") if path.is_file()]
        return [Stored(str(p.relative_to(self.folder)), p.stat().st_size) for p in sorted(found)]

    def read(self, name: str, start: int, end: int) -> bytes:
        with (self.folder / name).open("rb") as file:
            file.seek(start)
            return file.read(end - start)


class FolderBackend(RemoteBackend[RemoteOptions, RemotePlan]):
    name, title, options = "folder", "a folder", RemoteOptions
    pace = PACE

    def plan(self, job: Any) -> RemotePlan:
        raise NotImplementedError

    def service(
        self, spec: Mapping[str, Any], endpoints: Mapping[str, str], folder: Path
    ) -> FolderService:
        return FolderService(Path(spec["folder"]))


def new_run(folder: Path, service: FolderService, kernel: Owner | None = None) -> Path:
    (folder / "program").mkdir(parents=True)
    (folder / "program" / "main.py").write_text("print('hello')")
    Submission("folder", {"folder": str(service.folder)}, PROCESSES, kernel).write(folder)
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
