"""What a job prints and leaves behind, fetched into the run's folder, with retries."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, CarriedRun, error_line
from distrain_nb.backends.remote.service import Denied, LogEntry, OutputFolder, Service, Stored
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.disk import replace
from distrain_nb.worker.files.folder import EVENTS_FOLDER, LOG_FILE, RESULTS_FOLDER
from distrain_nb.worker.files.log import last_overwrite
from distrain_nb.worker.files.status import Progress
from distrain_nb.worker.metrics.event_format import event, first_event, record
from distrain_nb.worker.metrics.progress import ProgressTracker

if TYPE_CHECKING:
    from distrain_nb.image import Listener

POINTS_FILE = "events.out.tfevents.0000000000.log"
PIECE = 8 << 20
SERVICE = "service"  # the label of lines that the cloud wrote, not the job
_DRAFT = ".being-fetched"

# How our worker names the process that a line is from.
_TAGGED = re.compile(r"\[((?:rank|ps|reducer|evaluator) \d+)\] (.*)", re.DOTALL)


class OutsideRunFolder(DistrainError):
    """A service names an object that would be written outside of the run's folder."""


class Log:
    """The run's log. It continues at the size that the journal has recorded."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._file = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._file, journal.log_size)

    def add(self, records: bytes, size: int) -> int:
        """Write records after the first `size` bytes. Return the new size."""
        os.ftruncate(self._file, size)
        for start in range(0, len(records), PIECE):
            _write(self._file, records[start : start + PIECE], size + start)
        return size + len(records)

    def close(self) -> None:
        os.close(self._file)


def _write(file: int, data: bytes, place: int) -> None:
    while data:
        written = os.pwrite(file, data, place)
        data, place = data[written:], place + written


def _records(entries: Iterable[LogEntry], labels: list[str]) -> bytes:
    """Return entries as records of the log. New processes are appended to `labels`."""
    numbers = {label: number for number, label in enumerate(labels)}
    records = []
    for moment, role, replica, text, stream, _, process in entries:
        label, line = (process, text) if process else _tagged(role, replica, text)
        number = numbers.get(label)
        if number is None:
            number = numbers[label] = len(labels)
            labels.append(label)
        if "\n" in line or "\r" in line:
            head = f"{moment:.3f}\t{number}\t{stream}\t"
            records += [f"{head}{part}\n" for part in _overwritten(line)]
        else:
            records.append(f"{moment:.3f}\t{number}\t{stream}\t{line}\n")
    return "".join(records).encode("utf-8", "backslashreplace")


def _tagged(role: str, replica: int, text: str) -> tuple[str, str]:
    """Return the label of the process that wrote a line, and the line without that label."""
    tagged = _TAGGED.fullmatch(text) if text.startswith("[") else None
    if tagged:
        return tagged[1], tagged[2]
    return role if role == SERVICE else f"{role} {replica}", text


def _overwritten(text: str) -> Iterator[str]:
    """Yield the lines of a text as a terminal shows them in the end."""
    for line in text.rstrip("\n").split("\n"):
        yield last_overwrite(line.encode("utf-8", "backslashreplace")).decode()


def events(output: OutputFolder, folder: Path) -> None:
    """Fetch the bytes by which event files have grown, not whole files.

    Raises OutsideRunFolder for refused objects, once everything else has been fetched.
    """
    files = output.objects(f"{EVENTS_FOLDER}/")
    for stored, path in _allowed(files, folder, EVENTS_FOLDER):
        have = path.stat().st_size if path.exists() else 0
        if have > stored.size:  # written anew
            path.unlink()
            have = 0
        if have < stored.size:
            path.parent.mkdir(parents=True, exist_ok=True)
            for _ in _pieces(output, stored, path, have):
                pass


class Points:
    """The metrics that definitions extract from the log. Their event file grows with the log."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENTS_FOLDER / POINTS_FILE

    def add(self, entries: Sequence[LogEntry], size: int) -> int:
        """Write points after the first `size` bytes. Return the new size."""
        points = [(entry.time, *point) for entry in entries for point in entry.points]
        if not points:
            return size
        events = [] if size else [first_event(points[0][0])]
        events += [event(time, step, {name: value}) for time, name, step, value in points]
        data = b"".join(map(record, events))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(size)
            file.write(data)
        return size + len(data)


def results(output: OutputFolder, folder: Path, tell: Listener) -> None:
    """Fetch what `--result` names.

    A file gets its name when it is whole and on disk, because the journal then records that nothing
    is missing. Raises OutsideRunFolder for refused objects, once everything else has been fetched.
    """
    files = output.objects(f"{RESULTS_FOLDER}/")
    total, done = sum(stored.size for stored in files), 0
    for stored, path in _allowed(files, folder, RESULTS_FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}{_DRAFT}")
        draft.write_bytes(b"")
        for more in _pieces(output, stored, draft, 0):
            done += more
            tell(Progress("fetching results", done, total))
        replace(draft, path)


def _pieces(output: OutputFolder, stored: Stored, path: Path, have: int) -> Iterable[int]:
    with path.open("ab") as file:
        while have < stored.size:
            piece = output.read(stored.name, have, min(stored.size, have + PIECE))
            if not piece:
                raise DistrainError(f"{stored.name} ends after {have} of {stored.size} bytes")
            file.write(piece)
            have += len(piece)
            yield len(piece)


def _allowed(objects: Sequence[Stored], folder: Path, below: str) -> Iterator[tuple[Stored, Path]]:
    """Yield each object with the path where it belongs.

    The service chooses the names, so an object outside of the folder is refused, after all others.
    """
    refused = []
    for stored in objects:
        parts = [part for part in stored.name.split("/") if part not in ("", ".")]
        is_below = parts[:1] == [below] and len(parts) > 1 and ".." not in parts
        if is_below and not stored.name.startswith("/"):
            yield stored, folder / stored.name
        else:
            refused.append(folder / stored.name)
    if refused:
        raise OutsideRunFolder(
            f"an object is called {str(refused[0])!r}, which is outside of {folder}"
        )


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
        records = _records(entries, labels)
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
