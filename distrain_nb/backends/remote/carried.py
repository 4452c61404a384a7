"""The folder of a run as its carrier keeps it: how far it has come, and what it shows of it."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.clock import is_recent
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.backends.remote.variables import forget
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import Owner, Process, State, Status, request_cancel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from distrain_nb.worker.files.status import Progress

LONGEST_PAUSE_S = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """Seconds: from one look at the service to the next; without new lines until a log counts as
    read; how late a request may arrive that got no answer; and for how long what a job left
    behind is asked for when the service doesn't give it."""

    look: float = 2.0
    quiet: float = 6.0
    arrival: float = 20.0
    fetch: float = 120.0

    @classmethod
    def of(cls, endpoints: Mapping[str, str]) -> Pace:
        """A rehearsal, which says how late lines may come, is quicker than the service."""
        if not endpoints:
            return cls()
        return cls(look=0.3, quiet=1.0 + float(endpoints.get("late", 0)), arrival=1.0, fetch=20.0)


class Carried:
    """A run on its way. What is kept is on disk before it counts."""

    def __init__(self, folder: Path, pace: Pace) -> None:
        self.folder = folder
        self.pace = pace
        self.journal = Journal.read(folder)
        self.status = Status.read(folder)
        self.kernel: Owner | None = None

    @property
    def over(self) -> bool:
        return self.status.state.final

    @property
    def may_be_there(self) -> bool:
        """Whether the service may have a job of this run."""
        return bool(self.journal.sent or self.journal.job)

    @property
    def may_arrive(self) -> bool:
        """Whether the request was sent so lately that the service may not have it everywhere."""
        return is_recent(self.journal.sent, self.pace.arrival)

    def keep(self, journal: Journal) -> None:
        """Write down how far the run has come. Raises OSError, and then nothing has changed."""
        journal.write(self.folder)
        self.journal = journal

    def take(self, processes: tuple[Process, ...]) -> None:
        """Say that this process answers for the run now, whose processes are these at first."""
        if not self.journal.labels:
            self.journal.labels = [each.label for each in processes]
        known = self.status.processes or processes
        self.put(replace(self.status, supervisor=Owner.of(os.getpid()), processes=known))
        self.name_processes()

    def name_processes(self) -> None:
        """Show those too that only the log knows of: a replica's own words, such as `workers 1`."""
        labels, known = self.journal.labels, len(self.status.processes)
        new = tuple(_replica(index, labels[index]) for index in range(known, len(labels)))
        self.put(replace(self.status, processes=(*self.status.processes, *new)))

    def put(self, status: Status) -> None:
        if status != self.status:
            status.write(self.folder)
        before, self.status = self.status, status
        if (status.state, status.phase) != (before.state, before.phase):
            _log.info("%s: %s", status.state, status.phase)

    def note(self, text: str, wrong: Exception | None = None) -> None:
        """Show what goes on with the run, empty for nothing of note; `wrong` is behind it."""
        if text and text != self.status.note:
            _log.warning("%s", text, exc_info=wrong)
        self.put(replace(self.status, note=text))

    def show(self, progress: Progress) -> None:
        """Called while code is staged and results are fetched."""
        before = self.status.progress
        since = before.since if before and before.phase == progress.phase else time.time()
        shown = replace(progress, since=since)
        self.put(replace(self.status.reach(progress.phase), progress=shown))

    def end(self, state: State, error: str = "", note: str = "") -> None:
        """Write down how it ended."""
        forget(self.folder)
        self.put(self.status.enter(state, str(state), error=error, note=note))

    def stop_wanted(self) -> bool:
        """Whether somebody asked for the end, or the kernel has gone that waited for the run."""
        if self.kernel and not self.kernel.alive:
            request_cancel(self.folder)
        return (self.folder / CANCEL_FILE).exists()


def _replica(index: int, label: str) -> Process:
    role, _, number = label.partition(" ")
    return Process(index, label, role, int(number or 0))


def brief(wrong: Exception) -> str:
    """An error in a line."""
    text = str(wrong).strip().splitlines()
    return f"{type(wrong).__name__}: {text[0] if text else ''}"
