"""What a job says and leaves behind, fetched into the run's folder, with retries."""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from typing import TYPE_CHECKING

from distrain_nb.backends.remote import fetch
from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, Carried, brief
from distrain_nb.backends.remote.service import Denied, LogEntry
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.folder import RESULTS_FOLDER
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distrain_nb.backends.remote.service import Service
    from distrain_nb.backends.remote.submission import Journal

# What may be missing when a job has ended, in words for people.
LINES, EVENTS, RESULTS = "last lines of the log", "event files", RESULTS_FOLDER
SERVICE = "service"  # the role under which a service itself speaks
TELL_EVERY_S = 0.3
RESTARTING = "starting again after a lost machine"
# A service that starts one replica anew leaves the job's state as it is, and says so in the log.
_STARTS_AGAIN = re.compile(r"\b(preempted|restarting)\b", re.IGNORECASE)

_log = logging.getLogger(__name__)


class Unfinished(DistrainError):
    """What a job leaves behind has not come to an end in the time that there is for it."""


class Collector:
    """Lines, event files and results of one run."""

    def __init__(self, run: Carried, service: Service) -> None:
        self._run = run
        self._service = service
        self._log = fetch.Log(run.folder, run.journal)
        self._points = fetch.Points(run.folder)
        self._request = 0

    def close(self) -> None:
        self._log.close()

    def lines(self, *, last: bool = False) -> int:
        """Return the next lines, and the journal with them; how many there were."""
        journal = self._run.journal
        entries, cursor = self._service.log(journal.job, journal.cursor, last=last)
        if entries or cursor != journal.cursor:
            self._keep(entries, dataclasses.replace(journal, cursor=dict(cursor)))
        if any(entry.role == SERVICE and _STARTS_AGAIN.search(entry.text) for entry in entries):
            self._run.put(self._run.status.reach(RESTARTING))
        return len(entries)

    def events(self) -> None:
        """What event files have grown by."""
        fetch.events(self._service.output, self._run.folder)

    def say(self, text: str, journal: Journal) -> None:
        """Have a line of our own in the log; it counts with the rest of that journal."""
        self._keep([LogEntry(time.time(), SERVICE, 0, text)], journal)

    def allowed(self, what: Callable[[], object]) -> None:
        """Do it; that a permission is missing, or an object refused, is said once, in the log, and
        done without."""
        try:
            what()
        except (Denied, fetch.Outside) as error:
            self._tell_once(str(error))

    def all_of(self, kinds: Sequence[str], retry_s: float) -> dict[str, str]:
        """Fetch what an ended job has left, each kind tried for `retry_s` seconds, or until
        somebody asks for the end; what is missing then, and why."""
        self._request = self._run.last_request()
        steps = {LINES: self._last_lines, EVENTS: self.events, RESULTS: self._results}
        found = {kind: self._persist(kind, steps[kind], retry_s) for kind in kinds}
        return {kind: why for kind, why in found.items() if why}

    def _persist(self, kind: str, step: Callable[[], object], retry_s: float) -> str:
        """Return why it can't be done; empty if it has been done."""
        pause, until = self._run.pace.look, time.monotonic() + retry_s
        while True:
            try:
                step()
            except fetch.Outside as error:
                self._tell_once(str(error))
                return ""  # it will never be fetched
            except Denied as error:
                self._tell_once(str(error))
                return str(error)
            except Unfinished as error:
                return str(error)
            except Exception as error:
                if time.monotonic() + pause > until:
                    _log.warning("can't fetch %s", kind, exc_info=True)
                    return brief(error)
                self._run.note(f"can't fetch {kind}, trying again: {brief(error)}", error)
            else:
                _log.info("fetched %s", kind)
                return ""
            if self._run.rest(pause, self._request):
                return "the run was cancelled while it was asked for"
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _last_lines(self) -> None:
        """The job has ended; its last lines may take a while to come. Raises Unfinished where they
        go on coming: a machine that the service has lost may go on with its part."""
        pace = self._run.pace
        if pace.quiet:
            self._run.show(Progress("waiting for the last lines"))
        heard = begun = time.monotonic()
        while time.monotonic() < heard + pace.quiet:
            if self.lines():
                heard = time.monotonic()
            if heard > begun + pace.longest or self._run.rest(pace.look, self._request):
                break
        self.lines(last=True)
        if heard > begun + pace.longest:
            raise Unfinished(f"still being written {pace.longest:g} s after the job had ended")

    def _results(self) -> None:
        tell = at_most_every(TELL_EVERY_S, self._run.show)
        fetch.results(self._service.output, self._run.folder, tell)

    def _tell_once(self, text: str) -> None:
        journal = self._run.journal
        if text not in journal.denied:
            _log.warning("%s", text)
            entry = LogEntry(time.time(), SERVICE, 0, text, "e")
            self._keep([entry], dataclasses.replace(journal, denied=[*journal.denied, text]))

    def _keep(self, entries: Sequence[LogEntry], journal: Journal) -> None:
        """Lines and points count once the journal has been written, which says where they end."""
        labels = list(journal.labels)
        log_size = self._log.add(entries, journal.log_size, labels)
        points_size = self._points.add(entries, journal.points_size)
        self._run.keep(
            dataclasses.replace(journal, log_size=log_size, points_size=points_size, labels=labels)
        )
        self._run.name_processes()


def kinds(*, results: bool) -> tuple[str, ...]:
    """What a job leaves; results only if it has succeeded."""
    return (LINES, EVENTS, RESULTS) if results else (LINES, EVENTS)
