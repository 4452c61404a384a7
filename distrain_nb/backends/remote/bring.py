"""What a job says, brought into the run's folder: lines, event files, results."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError
from distrain_nb.image import Progress
from distrain_nb.worker.launch import RESULTS_FOLDER
from distrain_nb.worker.log import LOG_FILE
from distrain_nb.worker.metrics import event, first_event, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from distrain_nb.backends.remote.service import Entry, Output, Stored
    from distrain_nb.backends.remote.submission import Journal
    from distrain_nb.image import Listener

EVENTS = "tensorboard"
POINTS_FILE = "events.out.tfevents.0000000000.log"
PIECE = 8 << 20

# How our worker names the process that a line is from.
_TAGGED = re.compile(r"\[((?:rank|ps|reducer|evaluator) \d+)\] (.*)", re.DOTALL)


class Outside(DistrainError):
    """A service names an object that would be written outside of the run's folder."""


class Log:
    """The run's log, which goes on exactly where the journal says that it has come to."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._journal = journal
        self._file = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._file, journal.log_size)
        os.lseek(self._file, 0, os.SEEK_END)

    def add(self, entries: Sequence[Entry]) -> None:
        """Append them; the journal has yet to be written."""
        records = b"".join(map(self._record, entries))
        self._journal.log_size += len(records)
        while records:
            records = records[os.write(self._file, records) :]

    def close(self) -> None:
        os.close(self._file)

    def _record(self, entry: Entry) -> bytes:
        tagged = _TAGGED.fullmatch(entry.text)
        label = tagged[1] if tagged else f"{entry.role} {entry.replica}"
        text = tagged[2] if tagged else entry.text
        head = f"{entry.time:.3f}\t{self._process(label)}\t{entry.stream}\t"
        lines = text.rstrip("\n").split("\n")
        return "".join(f"{head}{line}\n" for line in lines).encode("utf-8", "backslashreplace")

    def _process(self, label: str) -> int:
        labels = self._journal.labels
        if label not in labels:
            labels.append(label)
        return labels.index(label)


def events(output: Output, folder: Path) -> None:
    """Fetch what event files have grown by: ranges, not whole files."""
    for stored in output.objects(f"{EVENTS}/"):
        path = _inside(folder / EVENTS, folder / stored.name)
        have = path.stat().st_size if path.exists() else 0
        if have > stored.size:  # written anew
            path.unlink()
            have = 0
        if have < stored.size:
            _append(output, stored, path, have)


class Points:
    """What metric definitions found in the log, as an event file that goes on as the log does."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._journal = journal
        self._path = folder / EVENTS / POINTS_FILE

    def add(self, entries: Sequence[Entry]) -> None:
        """Append them; the journal has yet to be written."""
        found = [(entry.time, *point) for entry in entries for point in entry.points]
        if not found:
            return
        size = self._journal.points_size
        events = [] if size else [first_event(found[0][0])]
        events += [event(time, step, {name: value}) for time, name, step, value in found]
        data = b"".join(map(record, events))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(size)
            file.write(data)
        self._journal.points_size = size + len(data)


def results(output: Output, folder: Path, tell: Listener) -> None:
    """Fetch what `--result` named."""
    found = output.objects(f"{RESULTS_FOLDER}/")
    total, done = sum(stored.size for stored in found), 0
    for stored in found:
        path = _inside(folder / RESULTS_FOLDER, folder / stored.name)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for more in _pieces(output, stored, path, 0):
            done += more
            tell(Progress("fetching results", done, total))


def _append(output: Output, stored: Stored, path: Path, have: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in _pieces(output, stored, path, have):
        pass


def _pieces(output: Output, stored: Stored, path: Path, have: int) -> Iterable[int]:
    with path.open("ab") as file:
        while have < stored.size:
            piece = output.read(stored.name, have, min(stored.size, have + PIECE))
            if not piece:
                return
            file.write(piece)
            have += len(piece)
            yield len(piece)


def _inside(folder: Path, path: Path) -> Path:
    """The path, if it is below the folder: names of objects come from outside."""
    if ".." in PurePosixPath(path).parts or folder not in path.parents:
        raise Outside(f"an object is called {str(path)!r}, which is outside of {folder}")
    return path
