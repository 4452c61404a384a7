"""Carries a run: its code to the service, and what the job says into the run's folder.

One process a run, which the kernel starts and which outlives it. All that it knows is on disk, so
that another one can go on when it has been killed.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.base import find
from distrain_nb.backends.remote import bring
from distrain_nb.backends.remote.report import first_report, warning
from distrain_nb.backends.remote.service import Denied, Entry, Observed
from distrain_nb.backends.remote.submission import Journal, Submission, write_links
from distrain_nb.backends.remote.variables import forget
from distrain_nb.errors import DistrainError
from distrain_nb.image import Progress, at_most_every
from distrain_nb.worker import status as told
from distrain_nb.worker.launch import PROGRAM_FOLDER
from distrain_nb.worker.status import CANCEL_FILE, Owner, Process, State, Status, request_cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from distrain_nb.backends.remote.backend import RemoteBackend
    from distrain_nb.backends.remote.service import Cursor, Service

# A service is asked less often than a rehearsal, and its last lines take longer to come.
LOOK_EVERY_S, LOOK_SOONER_S = 2.0, 0.3
QUIET_FOR_S, QUIET_SOONER_S = 6.0, 1.0
LONGEST_PAUSE_S = 30.0
TELL_EVERY_S = 0.3
LOCK_FILE = "carrier.lock"


class Cancelled(Exception):
    """Somebody asked for the end before the service had the job."""


def carry(folder: Path, endpoints: Mapping[str, str] | None = None) -> None:
    """Carry the run of that folder to its end; returns at once if another process does so.

    `endpoints` are those of a rehearsal's services.
    """
    lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    carrier = Carrier(folder, endpoints or {})
    try:
        submission = Submission.read(folder)
        backend = cast("RemoteBackend", find(submission.backend))
        carrier.run(submission, backend.service(submission.told, endpoints or {}))
    except Cancelled:
        carrier.end(Observed(State.CANCELLED))
    except DistrainError as wrong:
        carrier.end(Observed(State.FAILED, error=str(wrong)))
    except Exception as wrong:
        traceback.print_exc()
        carrier.end(Observed(State.FAILED, error=f"{type(wrong).__name__}: {wrong}"))
    finally:
        os.close(lock)


class Carrier:
    """One run on its way."""

    def __init__(self, folder: Path, endpoints: Mapping[str, str]) -> None:
        self._folder = folder
        self._every, self._quiet_for = LOOK_EVERY_S, QUIET_FOR_S
        if endpoints:  # of a rehearsal, which says how late lines may come
            late = float(endpoints.get("late", 0))
            self._every, self._quiet_for = LOOK_SOONER_S, QUIET_SOONER_S + late
        self._journal = Journal.read(folder)
        self._status = replace(Status.read(folder), supervisor=Owner.of(os.getpid()))
        self._asked = False
        self._denied: set[str] = set()
        self._kernel: Owner | None = None
        self._tell = at_most_every(TELL_EVERY_S, self._show)

    def run(self, submission: Submission, service: Service) -> None:
        """Whatever is not yet done: stage, create, follow, fetch."""
        self._kernel = submission.kernel
        labels = self._journal.labels or [each.label for each in submission.processes]
        self._journal.labels = labels
        self._put(replace(self._status, processes=submission.processes))
        if not self._journal.job:
            self._send(service)
        forget(self._folder)
        write_links(service.links(self._journal.job), self._folder)
        log = bring.Log(self._folder, self._journal)
        try:
            observed = self._follow(service, log)
            self._drain(service, log)
        finally:
            log.close()
        with suppress(Denied):  # which has been told
            bring.events(service.output, self._folder)
        if observed.state is State.SUCCEEDED:
            bring.results(service.output, self._folder, self._tell)
        self.end(self._with_report(observed))

    def end(self, observed: Observed) -> None:
        """Write down how it ended."""
        state = observed.state
        forget(self._folder)
        note = warning(self._folder) if state is State.SUCCEEDED else ""
        self._put(self._status.enter(state, str(state), error=observed.error, note=note))

    def _with_report(self, observed: Observed) -> Observed:
        """A failure with what our worker said of it, unless the service has told that already."""
        if observed.state is not State.FAILED:
            return observed
        report = first_report(self._folder, self._journal.labels)
        if report.partition("\n")[0] in observed.error:
            return observed
        return replace(observed, error=f"{report}\n{observed.error}")

    def _send(self, service: Service) -> None:
        if self._journal.request is None:
            self._tell(Progress("packaging the code"))
            program = self._folder / PROGRAM_FOLDER
            self._journal.request = dict(service.stage(program, self._tell))
            self._journal.write(self._folder)
        self._tell(Progress("submitting"))
        self._journal.job = service.create(self._journal.request)
        self._journal.write(self._folder)

    def _follow(self, service: Service, log: bring.Log) -> Observed:
        """Until the service says that the job has ended; a service that can't be reached is asked
        again, more and more seldom."""
        pause = self._every
        while True:
            try:
                observed = self._look(service, log)
            except bring.Outside:
                raise
            except Exception as wrong:
                pause = min(2 * pause, LONGEST_PAUSE_S)
                self._note(f"can't reach the service, trying again: {_brief(wrong)}")
            else:
                if observed.state.final:
                    return observed
                pause = self._every
            time.sleep(pause)

    def _look(self, service: Service, log: bring.Log) -> Observed:
        if self._cancel_wanted() and not self._asked:
            service.cancel(self._journal.job)
            self._asked = True
        observed = service.observe(self._journal.job)
        self._if_allowed(log, lambda: self._bring(service, log, last=False))
        self._if_allowed(log, lambda: bring.events(service.output, self._folder))
        if not observed.state.final:
            self._see(observed)
        return observed

    def _see(self, observed: Observed) -> None:
        state = State.STOPPING if self._asked else observed.state
        status = self._status
        if state is not status.state:
            status = status.enter(state)
        phase = observed.phase or str(state)
        self._put(replace(status, phase=phase, progress=None, note=""))

    def _bring(self, service: Service, log: bring.Log, *, last: bool) -> int:
        """The next lines, and the journal with them; how many there were."""
        entries, cursor = service.log(self._journal.job, self._journal.cursor, last=last)
        if entries or cursor != self._journal.cursor:
            self._keep(log, entries, cursor)
        return len(entries)

    def _keep(self, log: bring.Log, entries: Sequence[Entry], cursor: Cursor) -> None:
        log.add(entries)
        bring.Points(self._folder, self._journal).add(entries)
        self._journal.cursor = cursor
        self._journal.write(self._folder)
        if len(self._journal.labels) > len(self._status.processes):
            self._put(replace(self._status, processes=self._all_processes()))

    def _if_allowed(self, log: bring.Log, what: Callable[[], object]) -> None:
        """Do it; that a permission is missing is told once, in the log, and done without."""
        try:
            what()
        except Denied as wrong:
            if str(wrong) not in self._denied:
                self._denied.add(str(wrong))
                told = Entry(time.time(), "service", 0, str(wrong), "e")
                self._keep(log, [told], self._journal.cursor)

    def _drain(self, service: Service, log: bring.Log) -> None:
        """The job has ended; its last lines may take a while to come."""
        self._tell(Progress("waiting for the last lines"))
        heard = time.monotonic()
        while time.monotonic() < heard + self._quiet_for:
            if self._try(lambda: self._bring(service, log, last=False)):
                heard = time.monotonic()
            time.sleep(self._every)
        self._try(lambda: self._bring(service, log, last=True))

    def _all_processes(self) -> tuple[Process, ...]:
        known = self._status.processes
        more = enumerate(self._journal.labels[len(known) :], len(known))
        return (*known, *(_replica(index, label) for index, label in more))

    def _cancel_wanted(self) -> bool:
        if self._kernel and not self._kernel.alive:
            request_cancel(self._folder)
        return (self._folder / CANCEL_FILE).exists()

    def _show(self, progress: Progress) -> None:
        """Called while code is staged and results are fetched. Raises Cancelled."""
        if not self._journal.job and self._cancel_wanted():
            raise Cancelled
        before = self._status.progress
        since = before.since if before and before.phase == progress.phase else time.time()
        shown = told.Progress(progress.phase, progress.done, progress.total, since)
        self._put(replace(self._status, phase=progress.phase, progress=shown))

    def _note(self, text: str) -> None:
        self._put(replace(self._status, note=text))

    def _put(self, status: Status) -> None:
        if status != self._status or status.state.final:
            status.write(self._folder)
        self._status = status

    def _try(self, what: Callable[[], int | None]) -> int:
        """Do it; what is lost at the end of a run must not lose its outcome."""
        try:
            return what() or 0
        except Exception as wrong:
            print(f"{_brief(wrong)}", file=sys.stderr)
            return 0


def _replica(index: int, label: str) -> Process:
    """A process that only the log knows of: a replica's own words, such as `workers 1`."""
    role, _, number = label.rpartition(" ")
    return Process(index, label, role, int(number))


def _brief(wrong: Exception) -> str:
    text = str(wrong).strip().splitlines()
    return f"{type(wrong).__name__}: {text[0] if text else ''}"
