"""What workers report in a run's log: why they failed, which ranks hang, what has been saved.

Services know exit statuses alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.submission import Journal
from distrain_nb.worker.files import coded_line
from distrain_nb.worker.files.cause import NEAR_LIMIT, Cause
from distrain_nb.worker.files.coded_line import FAILED, GOES_ON, HANG, MARK
from distrain_nb.worker.files.folder import LOG_FILE
from distrain_nb.worker.files.log import parse
from distrain_nb.worker.files.status import State
from distrain_nb.worker.rank.stopping import Saving, saving_in
from distrain_nb.worker.rank.world import note_in

_END = 256 << 10  # bytes at the end of a log; a worker's report is the last that a replica says
_FOR = 16  # processes: more of them have more of the log's end, which has the reports of all
_MARK = MARK.encode()


class FailureReport(NamedTuple):
    """A replica's report of its failure, as its log has it."""

    headline: str
    cause: Cause
    rest: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.headline, *self.rest))


def with_report(run: CarriedRun, state: State, error: str) -> tuple[str, Cause | None]:
    """Return a failure with what our worker said of it, unless the service has told that already,
    and its cause, if a worker stated one."""
    if state is not State.FAILED:
        return error, None
    reports = last_reports(run.folder, run.journal)
    if not reports:
        return error, None
    repeated = next((report for report in reports if report.headline in error), None)
    if repeated:
        return error, repeated.cause
    return f"{reports[0]}\n{error}", reports[0].cause


def last_reports(folder: Path, journal: Journal) -> list[FailureReport]:
    """Return the replicas' reports of failures in the last attempt, the earliest first."""
    reports: dict[int, FailureReport] = {}
    for process, stream, text in _last_attempt(folder, journal):
        stated = coded_line.read(text) if stream == "e" else None
        if process in reports and stream == "e":
            report = reports[process]
            reports[process] = report._replace(rest=(*report.rest, text))
        elif stated and stated.code == FAILED:
            reports[process] = FailureReport(stated.text, Cause.of_facts(stated.facts))
    return list(reports.values())


def ranks_alone_warning(folder: Path) -> str:
    """Return the log's warning that the ranks worked alone; empty if there is none."""
    return note_in(parse(record)[3] for record in _last_records(folder))


class HangNotes:
    """What workers say in a run's log of ranks that hang; reads only what is new."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG_FILE
        self._read_to: int | None = None
        self._texts: dict[int, str] = {}

    def hang(self) -> str:
        """Return why ranks hang, as was said last; empty if they go on."""
        for record in self._new():
            _, process, _, text = parse(record)
            stated = coded_line.read(text)
            if stated and stated.code == HANG:
                self._texts[process] = stated.text
            elif stated and stated.code == GOES_ON:
                self._texts.pop(process, None)
        return "; ".join(self._texts.values())

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
        return [record for record in new.split(b"\n") if _MARK in record] if _MARK in new else []


def saving(folder: Path, journal: Journal) -> Saving:
    """Return what ranks said about saving in a run that was stopped."""
    labels, records = journal.labels, _last_attempt(folder, journal)
    lines = ((labels[process], coded_line.read(text)) for process, _, text in records)
    return saving_in((label, stated) for label, stated in lines if stated)


def has_saved_ahead(folder: Path, journal: Journal) -> bool:
    """Return whether the last attempt has saved ahead of its time limit, and was stopped so."""
    reports = last_reports(folder, journal)
    is_near = any(report.cause.kind == NEAR_LIMIT for report in reports)
    return is_near and saving(folder, journal).is_complete


def _last_attempt(folder: Path, journal: Journal) -> list[tuple[int, str, str]]:
    """Return process, stream and text of the last records of a log, of the last attempt alone."""
    size = _END * max(1, len(journal.labels) // _FOR)
    records = map(parse, _last_records(folder, journal.attempt_at, size))
    return [(process, stream, text) for _, process, stream, text in records]


def _last_records(folder: Path, since: int = 0, most: int = _END) -> list[bytes]:
    """Return the last records of a log behind its first `since` bytes; none of a study, or of a run
    that never began."""
    if not (folder / LOG_FILE).exists():
        return []
    with (folder / LOG_FILE).open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(since, size - most))
        records = log.read().split(b"\n")[:-1]
    return records[1:] if size - since > most else records
