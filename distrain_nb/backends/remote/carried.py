"""The folder of a run as its carrier keeps it: how far it has come, and what it shows of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from distrain_nb.backends.remote.clock import is_recent
from distrain_nb.backends.remote.service import Pace
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.backends.remote.variables import delete_variables
from distrain_nb.worker.files.cause import Cause
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import Owner, Process, Progress, State, Status, request_cancel

LONGEST_PAUSE_S = 30.0
HEARD_WITHIN_S = 0.2

_log = logging.getLogger(__name__)


class CarriedRun:
    """A run on its way. What is kept is on disk before it counts."""

    def __init__(self, folder: Path, pace: Pace | None = None) -> None:
        self.folder = folder
        self.pace = pace or Pace()
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
            self.journal.labels = [process.label for process in processes]
        processes_now = self.status.processes or processes
        self.put(replace(self.status, supervisor=Owner.of(os.getpid()), processes=processes_now))
        self.name_processes()

    def rename(self, processes: tuple[Process, ...]) -> None:
        """Have these processes in the place of those at first, before there is a line of any."""
        labels = [process.label for process in processes]
        if labels and labels != self.journal.labels and not self.journal.log_size:
            self.keep(replace(self.journal, labels=labels))
            self.put(replace(self.status, processes=processes))

    def name_processes(self) -> None:
        """Show those too that only the log knows of: a replica's own words, such as `workers 1`."""
        labels, count = self.journal.labels, len(self.status.processes)
        new = tuple(_replica(index, labels[index]) for index in range(count, len(labels)))
        self.put(replace(self.status, processes=(*self.status.processes, *new)))

    def put(self, status: Status) -> None:
        if status != self.status:
            status.write(self.folder)
        before, self.status = self.status, status
        if (status.state, status.phase) != (before.state, before.phase):
            _log.info("%s: %s", status.state, status.phase)

    def note(self, text: str, error: Exception | None = None, *, hang: str = "") -> None:
        """Show what goes on with the run, or empty text for nothing; `error` caused it. `hang` is
        why its ranks make no progress."""
        if text and text != self.status.note:
            _log.log(logging.WARNING if error else logging.INFO, "%s", text, exc_info=error)
        self.put(replace(self.status, note=text, hang=hang))

    def show(self, progress: Progress) -> None:
        """Show the progress of staging code and of fetching results."""
        before = self.status.progress
        since = before.since if before and before.phase == progress.phase else time.time()
        shown = replace(progress, since=since)
        self.put(replace(self.status.reach(progress.phase), progress=shown))

    def end(
        self,
        state: State,
        error: str = "",
        note: str = "",
        *,
        cause: Cause | None = None,
        warns: bool = False,
    ) -> None:
        """Write down how it ended; the note `warns` of a success that is none."""
        delete_variables(self.folder)
        changes = {"error": error, "note": note, "cause": cause, "warns": warns}
        self.put(self.status.enter(state, str(state), **changes))

    def stop_wanted(self) -> bool:
        """Return whether somebody asked for the end, or the kernel has gone that waited for the
        run."""
        there = (self.folder / CANCEL_FILE).exists()
        if not there and self.kernel and not self.kernel.alive:
            request_cancel(self.folder)
            return True
        return there

    def last_request(self) -> int:
        """When somebody last asked for the end, as the folder's file system counts; 0 for never."""
        try:
            return (self.folder / CANCEL_FILE).stat().st_mtime_ns if self.stop_wanted() else 0
        except FileNotFoundError:
            return 0

    def rest(
        self,
        seconds: float,
        request: int | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bool:
        """Wait, but only until somebody asks for the end, since that `request` or from now on; say
        whether somebody has. Do each moment what is to be done `meanwhile`."""
        before = self.last_request() if request is None else request
        end = time.monotonic() + seconds
        while self.last_request() == before:
            remaining_s = end - time.monotonic()
            if remaining_s <= 0:
                return False
            time.sleep(min(remaining_s, HEARD_WITHIN_S))
            meanwhile()
        return True


def _replica(index: int, label: str) -> Process:
    role, _, number = label.partition(" ")
    return Process(index, label, role, int(number or 0))


def error_line(error: Exception) -> str:
    """Return an error in a line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"
