"""Folders of runs, written by the code that writes them in real runs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.files.status import Process, State, Status, request_cancel
from distrain_nb.worker.metrics import event_format, writer


@dataclass
class RunFolder:
    """A run of two ranks whose life a test writes."""

    folder: Path
    id: int = 7
    name: str = "digits"
    backend: str = "local"
    rehearsed: bool = False
    resumable: bool = False
    created: float = field(default_factory=time.time)
    experiment: str = ""
    study: str = ""
    line: str = "--on local --ranks-per-replica 2"
    options: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "tensorboard").mkdir()
        self._events: dict[str, writer._EventFile] = {}
        self._log = LogWriter(self.folder)
        self._splitters = {(n, s): LineSplitter(n, s) for n in range(2) for s in "oe"}
        self.status = Status(State.STARTING, "starting").enter(State.STARTING)
        processes = tuple(Process(n, f"rank {n}", "workers", 0, n) for n in range(2))
        self.enter(State.RUNNING, processes=processes)

    def enter(self, state: State, **changes: object) -> None:
        self.status = self.status.enter(state, str(state), **changes)

    def print(self, process: int, text: str, stream: str = "o") -> None:
        splitter = self._splitters[process, stream]
        self._log.write(splitter.feed(text.encode()) + splitter.moving())

    def report(self, steps: int, series: str = "", begin: int = 0, **values: float) -> None:
        if series not in self._events:
            self._events[series] = writer._EventFile(self.folder / "tensorboard" / series)
        for step in range(begin, begin + steps):
            numbers = {tag: value + math.sin(step / 9) for tag, value in values.items()}
            self._events[series].write(event_format.event(time.time(), step, numbers))

    def cancel(self) -> None:
        request_cancel(self.folder)
