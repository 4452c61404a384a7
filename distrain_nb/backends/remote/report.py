"""Why a run failed, as our workers said it in its log: services know exit statuses alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from distrain_nb.backends.remote.carried import Carried
from distrain_nb.backends.remote.collector import SERVICE
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import parse
from distrain_nb.worker.files.status import STANDS_STILL, State
from distrain_nb.worker.rank import stopping
from distrain_nb.worker.rank.world import note_in
from distrain_nb.worker.supervisor.grace import NEAR_LIMIT
from distrain_nb.worker.supervisor.hangs import GOES_ON, SAID

_END = 256 << 10  # bytes at the end of a log; a worker's report is the last that a replica says
_OF_A_RANK = re.compile(r"(rank|ps|reducer|evaluator) \d+")
_OF_HANGS = b"distrain: the run "  # how SAID and GOES_ON begin
_ATTEMPT = re.compile(r"attempt \d+ of \d+, after ")
_BEGINS = re.compile(rf"({_OF_A_RANK.pattern}|the launcher) failed|it was stopped")


def with_report(run: Carried, state: State, error: str) -> str:
    """Return a failure with what our worker said of it, unless the service has told that
    already."""
    if state is not State.FAILED:
        return error
    reports = last_reports(run.folder, run.journal.labels)
    is_told = any(report.partition("\n")[0] in error for report in reports)
    return error if is_told or not reports else f"{reports[0]}\n{error}"


def first_report(folder: Path, labels: Sequence[str]) -> str:
    """Return the report of the worker that failed first; empty if none did.

    `labels` name the processes of the run's log.
    """
    return next(iter(last_reports(folder, labels)), "")


def last_reports(folder: Path, labels: Sequence[str]) -> list[str]:
    """Return the replicas' reports of failures in the last attempt, the earliest first."""
    reports: dict[int, list[str]] = {}
    for process, stream, text in _last_attempt(folder, labels):
        if stream != "e" or _OF_A_RANK.fullmatch(labels[process]):
            continue
        if process in reports:
            reports[process].append(text)
        elif _BEGINS.match(text):
            reports[process] = [text]
    return ["\n".join(lines) for lines in reports.values()]


def warning(folder: Path) -> str:
    """Return the log's warning that the ranks worked alone; empty if there is none."""
    texts = (parse(record)[3] for record in _last_records(folder))
    return note_in(text.partition("] ")[2] or text for text in texts)


class Standstill:
    """What workers say in a run's log of ranks that stand still; reads only what is new."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG_FILE
        self._read_to: int | None = None
        self._sentences: dict[int, str] = {}

    def note(self) -> str:
        """Return why ranks stand still, as was said last; empty if they go on."""
        for record in self._new():
            _, process, _, text = parse(record)
            word = text.removeprefix(f"[{SERVICE}] ")
            if word.startswith(SAID):
                self._sentences[process] = word.removeprefix(SAID)
            elif word.startswith(GOES_ON):
                self._sentences.pop(process, None)
        return f"{STANDS_STILL}: {'; '.join(self._sentences.values())}" if self._sentences else ""

    def _new(self) -> list[bytes]:
        if not self._path.exists():  # a study's, or that of a run that never began
            return []
        with self._path.open("rb") as log:
            if self._read_to is None:
                self._read_to = max(0, log.seek(0, 2) - _END)
                log.seek(self._read_to)
                self._read_to += len(log.readline()) if self._read_to else 0
            log.seek(self._read_to)
            new = log.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read_to += len(new)
        return [record for record in new.split(b"\n") if _OF_HANGS in record]


def saving(folder: Path, labels: Sequence[str]) -> str:
    """Return what ranks said about saving in a run that was stopped; empty if nothing."""
    return stopping.note_in(
        (labels[process], text.partition("] ")[2] if text.startswith("[") else text)
        for process, _, text in _last_attempt(folder, labels)
    )


def has_saved_ahead(folder: Path, labels: Sequence[str]) -> bool:
    """Return whether the last attempt has saved ahead of its time limit, and was stopped so."""
    is_near = any(report.startswith(NEAR_LIMIT) for report in last_reports(folder, labels))
    return is_near and saving(folder, labels).startswith(stopping.STOPPED_AFTER)


def _last_attempt(folder: Path, labels: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return process, stream and text of the last records of a log, of the last attempt alone."""
    lines: list[tuple[int, str, str]] = []
    for _, process, stream, text in map(parse, _last_records(folder)):
        if labels[process] == SERVICE and _ATTEMPT.match(text):
            lines.clear()
        lines.append((process, stream, text))
    return lines


def _last_records(folder: Path) -> list[bytes]:
    """Return the last records of a log; none of a study, or of a run that never began."""
    if not (folder / LOG_FILE).exists():
        return []
    with (folder / LOG_FILE).open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - _END))
        records = log.read().split(b"\n")[:-1]
    return records[1:] if size > _END else records
