"""The jobs of this user, asked for once a moment for all processes that carry runs.

Each looks into one file; who finds it old asks anew, in a thread, so that a slow controller holds
nobody up. What is asked is paced by how long the answer takes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import socket
import threading
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.places.slurm.squeue import QueuedJob
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file

if TYPE_CHECKING:
    from distrain_nb.places.slurm.controller import Controller

# All that wait, of everybody, are asked for more seldom.
WAITING_EVERY_S = 15.0
SHARE = 5  # at most one part in so many of the time goes into asking
LONGEST_PAUSE_S = 20.0
_JOIN_S, _FIRST_S = 0.4, 15.0


@dataclass(frozen=True)
class JobList:
    """What the controller said when it was asked at `begun`. Of a later question, at `asked`, that
    it gave no answer to, `trouble` has what the command said; `took` is how long that went. `ahead`
    is how many jobs wait before one of this user's in its partition, as of `ranked`."""

    begun: float = 0.0
    rows: tuple[QueuedJob, ...] = ()
    asked: float = 0.0
    took: float = 0.0
    trouble: str = ""
    ahead: dict[str, int] = field(default_factory=dict)
    ranked: float = 0.0

    def row(self, job: str, name: str) -> QueuedJob | None:
        """Return the job of that number and name: a controller that lost its state counts anew."""
        return next((row for row in self.rows if (row.job, row.name) == (job, name)), None)

    def named(self, name: str) -> str:
        """Return the job of that name; empty if there is none."""
        return next((row.job for row in self.rows if row.name == name), "")


def jobs_before(text: str, jobs: Collection[str]) -> dict[str, int]:
    """Return how many jobs come before each of one's own; `text` has a line ID|PARTITION for each
    that waits, in their order."""
    counts: dict[str, int] = {}
    counts_before = {}
    for line in text.splitlines():
        job, _, partition = line.partition("|")
        if job in jobs:
            counts_before[job] = counts.get(partition, 0)
        counts[partition] = counts.get(partition, 0) + 1
    return counts_before


@dataclass
class Queue:
    """The file in `folder`, no older than `pace` seconds as far as the controller answers."""

    folder: Path
    controller: Controller
    pace: float = 1.0
    _asking: threading.Thread | None = field(default=None, repr=False)

    def look(self, since: float = 0.0) -> JobList:
        """Return the newest answer; a question put before `since` counts as none, and is waited
        for, some seconds at most."""
        answer = self._read()
        if self._is_old(answer):
            self._ask()
            self._wait(_JOIN_S)
            answer = self._read()
        end = time.monotonic() + _FIRST_S
        while answer.begun < since and answer.asked < since and time.monotonic() < end:
            self._ask()
            self._wait(0.2)
            answer = self._read()
        return answer

    def _is_old(self, answer: JobList) -> bool:
        pause = min(max(self.pace, SHARE * answer.took), LONGEST_PAUSE_S)
        return not answer.asked <= time.time() < answer.asked + pause

    def _wait(self, seconds: float) -> None:
        if self._asking:
            self._asking.join(seconds)

    def _ask(self) -> None:
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask_alone, daemon=True)
            self._asking.start()

    def _ask_alone(self) -> None:
        """Ask, unless another process is just asking."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._path("lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.1)
                return
            self._put(self._read())

    def _put(self, before: JobList) -> None:
        asked, start = time.time(), time.monotonic()
        try:
            answer = self._answer(before, asked)
        except DistrainError as error:
            answer = replace(before, trouble=str(error))
        answer = replace(answer, asked=asked, took=time.monotonic() - start)
        replace_file(self._path("jobs"), json.dumps(asdict(answer)).encode())

    def _answer(self, before: JobList, asked: float) -> JobList:
        """Ask. Raises DistrainError."""
        answer = replace(before, begun=asked, rows=self.controller.jobs(), trouble="")
        waiting = {row.job for row in answer.rows if row.state == "PENDING"}
        new = waiting - before.ahead.keys()
        if waiting and (new or asked > before.ranked + WAITING_EVERY_S):
            counts = {
                **dict.fromkeys(waiting, 0),
                **jobs_before(self.controller.waiting(), waiting),
            }
            answer = replace(answer, ahead=counts, ranked=asked)
        return answer

    def _read(self) -> JobList:
        try:
            return fields.read(JobList, self._path("jobs"))
        except (FileNotFoundError, fields.Damaged):
            return JobList()

    def _path(self, suffix: str) -> Path:
        """Return a file of this host's for the cluster: clocks of hosts differ."""
        key = "\n".join([socket.gethostname(), self.controller.cluster]).encode()
        return self.folder / f"queue-{hashlib.sha256(key).hexdigest()[:16]}.{suffix}"
