"""Writes the entries of a service's log into the run's folder: lines, and metrics read from
them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from distrain_nb.backends.remote.service import LogEntry
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.worker.files.folder import EVENTS_FOLDER, LOG_FILE
from distrain_nb.worker.files.log import last_overwrite
from distrain_nb.worker.metrics.event_format import event, first_event, record

POINTS_FILE = "events.out.tfevents.0000000000.log"
_AT_ONCE = 8 << 20  # bytes written in one call

SERVICE = "service"  # the label of lines that the cloud wrote, not the job

# How our worker names the process that a line is from.
_TAGGED = re.compile(r"\[((?:rank|ps|reducer|evaluator) \d+)\] (.*)", re.DOTALL)


class Log:
    """The run's log. It continues at the size that the journal has recorded."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._file = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._file, journal.log_size)

    def add(self, records: bytes, size: int) -> int:
        """Write records after the first `size` bytes. Return the new size."""
        os.ftruncate(self._file, size)
        for start in range(0, len(records), _AT_ONCE):
            _write(self._file, records[start : start + _AT_ONCE], size + start)
        return size + len(records)

    def close(self) -> None:
        os.close(self._file)


def _write(file: int, data: bytes, place: int) -> None:
    while data:
        written = os.pwrite(file, data, place)
        data, place = data[written:], place + written


def log_records(entries: Iterable[LogEntry], labels: list[str]) -> bytes:
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
