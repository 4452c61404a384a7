"""What a job says, brought into the run's folder: lines, event files, results."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.worker.files.disk import replace
from distrain_nb.worker.files.folder import EVENTS_FOLDER, LOG_FILE, RESULTS_FOLDER
from distrain_nb.worker.files.log import last_overwrite
from distrain_nb.worker.files.status import Progress
from distrain_nb.worker.metrics.writer import event, first_event, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from distrain_nb.backends.remote.service import LogEntry, OutputFolder, Stored
    from distrain_nb.backends.remote.submission import Journal
    from distrain_nb.image import Listener

POINTS_FILE = "events.out.tfevents.0000000000.log"
PIECE = 8 << 20
SERVICE = "service"  # what is said by nobody of the job, but by the cloud
_DRAFT = ".being-fetched"

# How our worker names the process that a line is from.
_TAGGED = re.compile(r"\[((?:rank|ps|reducer|evaluator) \d+)\] (.*)", re.DOTALL)


class Outside(DistrainError):
    """A service names an object that would be written outside of the run's folder."""


class Log:
    """The run's log, which goes on exactly where the journal says that it has come to."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._file = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._file, journal.log_size)

    def add(self, entries: Sequence[LogEntry], size: int, labels: list[str]) -> int:
        """Write them after the first `size` bytes, and give the size then; labels of processes
        that are new are appended."""
        records = b"".join(_record(entry, labels) for entry in entries)
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


def _record(entry: LogEntry, labels: list[str]) -> bytes:
    tagged = _TAGGED.fullmatch(entry.text)
    own = entry.role if entry.role == SERVICE else f"{entry.role} {entry.replica}"
    label = tagged[1] if tagged else own
    text = tagged[2] if tagged else entry.text
    if label not in labels:
        labels.append(label)
    head = b"%.3f\t%d\t%s\t" % (entry.time, labels.index(label), entry.stream.encode())
    lines = text.encode("utf-8", "backslashreplace").rstrip(b"\n").split(b"\n")
    return b"".join(head + last_overwrite(line) + b"\n" for line in lines)


def events(output: OutputFolder, folder: Path) -> None:
    """Fetch what event files have grown by: ranges, not whole files.

    Raises Outside, when all else is there, for objects that are refused.
    """
    found = output.objects(f"{EVENTS_FOLDER}/")
    for stored, path in _allowed(found, folder, EVENTS_FOLDER):
        have = path.stat().st_size if path.exists() else 0
        if have > stored.size:  # written anew
            path.unlink()
            have = 0
        if have < stored.size:
            path.parent.mkdir(parents=True, exist_ok=True)
            for _ in _pieces(output, stored, path, have):
                pass


class Points:
    """What metric definitions found in the log, as an event file that goes on as the log does."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENTS_FOLDER / POINTS_FILE

    def add(self, entries: Sequence[LogEntry], size: int) -> int:
        """Write them after the first `size` bytes, and give the size then."""
        found = [(entry.time, *point) for entry in entries for point in entry.points]
        if not found:
            return size
        events = [] if size else [first_event(found[0][0])]
        events += [event(time, step, {name: value}) for time, name, step, value in found]
        data = b"".join(map(record, events))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(size)
            file.write(data)
        return size + len(data)


def results(output: OutputFolder, folder: Path, tell: Listener) -> None:
    """Fetch what `--result` named; a file has its name once it is whole, and on
    disk, as the journal will say that nothing is missing.

    Raises Outside, when all else is there, for objects that are refused.
    """
    found = output.objects(f"{RESULTS_FOLDER}/")
    total, done = sum(stored.size for stored in found), 0
    for stored, path in _allowed(found, folder, RESULTS_FOLDER):
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


def _allowed(found: Sequence[Stored], folder: Path, below: str) -> Iterator[tuple[Stored, Path]]:
    """Yield where each object belongs: names come from outside, so what isn't below the folder
    waits for nothing but a refusal."""
    refused = []
    for stored in found:
        path = folder / stored.name
        if ".." in PurePosixPath(path).parts or folder / below not in path.parents:
            refused.append(path)
        else:
            yield stored, path
    if refused:
        raise Outside(f"an object is called {str(refused[0])!r}, which is outside of {folder}")
