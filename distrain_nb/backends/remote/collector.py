"""What a job prints and leaves behind, fetched into the run's folder, with retries."""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from collections.abc import Callable, Sequence

from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, CarriedRun, error_line
from distrain_nb.backends.remote.log_writer import SERVICE, Log, Points, log_records
from distrain_nb.backends.remote.output_files import OutsideRunFolder, events, results
from distrain_nb.backends.remote.service import Denied, LogEntry, Service
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.folder import RESULTS_FOLDER
from distrain_nb.worker.files.status import Progress
from distrain_nb.worker.metrics.progress import ProgressTracker

# What may be missing when a job has ended, in words for people.
LINES, EVENTS, RESULTS = "last lines of the log", "event files", RESULTS_FOLDER
TELL_EVERY_S = 0.3
EVENTS_SHARE = 0.1
RESTARTING = "starting again after a lost machine"
# A service that starts one replica anew leaves the job's state as it is, and says so in the log.
_STARTS_AGAIN = re.compile(r"\b(preempted|restarting)\b", re.IGNORECASE)
_log = logging.getLogger(__name__)


class Unfinished(DistrainError):
    """A job goes on writing after the time that it has for that."""


class Collector:
    """Lines, event files and results of one run."""

    def __init__(self, run: CarriedRun, service: Service) -> None:
        self._run = run
        self._service = service
        self._log = Log(run.folder, run.journal)
        self._points = Points(run.folder)
        self._progress = ProgressTracker(run.folder)
        self._request = 0
        self._events_due = 0.0

    def close(self) -> None:
        self._log.close()

    def lines(self, *, last: bool = False) -> int:
        """Fetch the next lines and write the journal. Return the number of lines."""
        journal = self._run.journal
        entries, cursor = self._service.log(journal.job, journal.cursor, last=last)
        if entries or cursor != journal.cursor:
            self._keep(entries, dataclasses.replace(journal, cursor=dict(cursor)))
        if any(entry.role == SERVICE and _STARTS_AGAIN.search(entry.text) for entry in entries):
            self._run.put(self._run.status.reach(RESTARTING))
        return len(entries)

    def events(self) -> None:
        """Fetch the bytes by which event files have grown."""
        events(self._service.output, self._run.folder)

    def new_events(self) -> None:
        """Fetch event files while the job runs, for at most a tenth of the time.

        Only to list the files of a thousand ranks takes a while.
        """
        began = time.monotonic()
        if began >= self._events_due:
            self.events()
            ended = time.monotonic()
            self._events_due = ended + (ended - began) / EVENTS_SHARE

    def say(self, text: str, journal: Journal) -> None:
        """Write a line of the carrier into the log, together with the rest of that journal."""
        self._keep([LogEntry(time.time(), SERVICE, 0, text)], journal)

    def allowed(self, step: Callable[[], object]) -> None:
        """Do a step. If a permission is missing or an object is refused, the log says so once."""
        try:
            step()
        except (Denied, OutsideRunFolder) as error:
            self._tell_once(str(error))

    def all_of(self, kinds: Sequence[str], retry_s: float) -> dict[str, str]:
        """Fetch what an ended job has left.

        Each kind is tried for `retry_s` seconds, or until the user cancels the run. Return the
        kinds that are missing, with the reasons.
        """
        self._request = self._run.last_request()
        steps = {LINES: self._last_lines, EVENTS: self.events, RESULTS: self._results}
        answers = {kind: self._persist(kind, steps[kind], retry_s) for kind in kinds}
        return {kind: why for kind, why in answers.items() if why}

    def _persist(self, kind: str, step: Callable[[], object], retry_s: float) -> str:
        """Return why a step failed; empty if it succeeded."""
        pause, until = self._run.pace.look, time.monotonic() + retry_s
        while True:
            try:
                step()
            except OutsideRunFolder as error:
                self._tell_once(str(error))
                return ""  # no retry would help
            except Denied as error:
                self._tell_once(str(error))
                return str(error)
            except Unfinished as error:
                return str(error)
            except Exception as error:
                if time.monotonic() + pause > until:
                    _log.warning("can't fetch %s", kind, exc_info=True)
                    return error_line(error)
                self._run.note(f"can't fetch {kind}, trying again: {error_line(error)}", error)
            else:
                _log.info("fetched %s", kind)
                return ""
            if self._run.rest(pause, self._request):
                return "the run was cancelled before it was fetched"
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _last_lines(self) -> None:
        """Wait for the last lines of a job that has ended, which may take a while.

        Raises Unfinished if lines keep coming: a machine that the service has lost may still run.
        """
        pace = self._run.pace
        if pace.quiet:
            self._run.show(Progress("waiting for the last lines"))
        heard = begun = time.monotonic()
        while time.monotonic() < heard + pace.quiet:
            if self.lines():
                heard = time.monotonic()
            if heard > begun + pace.longest or self._run.rest(pace.look, self._request):
                break
        while not pace.quiet and self.lines() and time.monotonic() < begun + pace.longest:
            pass  # in portions as before: only the last one is read in one piece
        self.lines(last=True)
        if heard > begun + pace.longest:
            raise Unfinished(f"still being written {pace.longest:g} s after the job had ended")

    def _results(self) -> None:
        tell = at_most_every(TELL_EVERY_S, self._run.show)
        results(self._service.output, self._run.folder, tell)

    def _tell_once(self, text: str) -> None:
        journal = self._run.journal
        if text not in journal.denied:
            _log.warning("%s", text)
            entry = LogEntry(time.time(), SERVICE, 0, text, "e")
            self._keep([entry], dataclasses.replace(journal, denied=[*journal.denied, text]))

    def _keep(self, entries: Sequence[LogEntry], journal: Journal) -> None:
        """Write lines and points, then the journal with the new sizes.

        They count once the journal is written.
        """
        labels = list(journal.labels)
        records = log_records(entries, labels)
        log_size = self._log.add(records, journal.log_size)
        points_size = self._points.add(entries, journal.points_size)
        self._run.keep(
            dataclasses.replace(journal, log_size=log_size, points_size=points_size, labels=labels)
        )
        self._run.name_processes()
        self._progress.hear(records)
        self._progress.look(at_once=True)


def kinds(*, results: bool) -> tuple[str, ...]:
    """Return the kinds of files that a job leaves; results only if it has succeeded."""
    return (LINES, EVENTS, RESULTS) if results else (LINES, EVENTS)
