"""The folder of a run as its carrier keeps it: how far it has come, and what it shows of it.

A job is sent once, whatever happens to the answer and to the process that sends it.

Before a request goes out it is written down that it does. A process that finds that written, or
whose request gets no answer, asks the service for the job before it does anything else: the run
ends as cancelled, and another request is sent, only if there is none.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from distrain_nb.backends.remote.log_ordering import is_recent
from distrain_nb.backends.remote.options import delete_variables
from distrain_nb.backends.remote.service import Pace, Service, Unanswered
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.cause import Cause
from distrain_nb.worker.files.folder import CANCEL_FILE, PROGRAM_FOLDER
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


TELL_EVERY_S = 0.3

ATTEMPTS = 6  # to send a request of which the service then has no job


class Cancelled(Exception):
    """Somebody asked for the end, and the service has no job of this run."""


def send(run: CarriedRun, service: Service) -> None:
    """Whatever is not yet done: stage, create. The journal has the job's name then.

    Raises Cancelled, or DistrainError if the service takes no such job.
    """
    stage(run, service)
    if not run.journal.job:
        run.show(Progress("submitting"))
    trouble: Exception | None = None
    attempts = ATTEMPTS
    while not run.journal.job:
        if run.journal.sent:
            job = _look_for(run, service)
            run.keep(replace(run.journal, job=job, sent=run.journal.sent if job else 0.0))
        elif trouble and not (attempts and isinstance(trouble, Unanswered)):
            raise trouble
        elif run.stop_wanted():
            raise Cancelled
        else:
            attempts -= 1
            trouble = _create(run, service)
    _log.info("the service has the job: %s", run.journal.job)


def stage(run: CarriedRun, service: Service) -> None:
    """Stage the code, unless that has been done. Raises Cancelled."""
    if run.journal.request is not None:
        return

    def tell(progress: Progress) -> None:
        if run.stop_wanted():
            raise Cancelled
        run.show(progress)

    listener = at_most_every(TELL_EVERY_S, tell)
    listener(Progress("packaging the code"))
    staged = service.stage(run.folder / PROGRAM_FOLDER, listener)
    run.keep(replace(run.journal, request=dict(staged)))


def _create(run: CarriedRun, service: Service) -> Exception | None:
    """Send the request; what went wrong, unless it was refused, which is raised."""
    request = run.journal.request or {}
    run.keep(replace(run.journal, sent=time.time()))
    try:
        run.keep(replace(run.journal, job=service.create(request)))
    except Unanswered as error:
        run.note(f"no answer; asking whether the service has the job: {error_line(error)}", error)
        return error
    except DistrainError:
        run.keep(replace(run.journal, sent=0.0))
        raise
    except Exception as error:
        _log.warning("can't send the request", exc_info=True)
        return error
    return None


def _look_for(run: CarriedRun, service: Service) -> str:
    """Return the job that was sent before; empty when it can't arrive any more."""
    pause = run.pace.look
    while True:
        late = not run.may_arrive
        try:
            job = service.find(run.journal.request or {})
        except Exception as error:
            pause = min(2 * pause, LONGEST_PAUSE_S)
            doing = "can't ask whether the service has the job, trying again"
            run.note(f"{doing}: {error_line(error)}", error)
        else:
            if job or late:
                run.note("")
                return job
        run.rest(pause)
