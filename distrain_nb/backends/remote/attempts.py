"""A job that has failed is sent again, as the run's next attempt: by its carrier, nobody else.

Services that could do so by themselves are told not to: one of the two counts. Which ends are worth
it, and when attempts are of no more use, `worker/supervisor/retries.py` says.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.collector import Collector
from distrain_nb.backends.remote.service import Observed, Service
from distrain_nb.backends.remote.submission import Journal, Submission
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import coded_line, prompts
from distrain_nb.worker.files.cause import NEAR_LIMIT, Cause
from distrain_nb.worker.files.coded_line import FAILED, GOES_ON, HANG, MARK
from distrain_nb.worker.files.failure import cause_of, decisive, headline, of_cause
from distrain_nb.worker.files.folder import CHECKPOINTS_FOLDER, EVENTS_FOLDER, LOG_FILE
from distrain_nb.worker.files.log import parse
from distrain_nb.worker.files.status import State
from distrain_nb.worker.rank.stopping import Saving, saving_in
from distrain_nb.worker.rank.world import note_in
from distrain_nb.worker.supervisor.retries import (
    RETRIED,
    SAVED_AHEAD,
    TIME_LIMIT,
    Headway,
    RunAttempt,
    digest,
    highest_step,
    is_retried,
)

_log = logging.getLogger(__name__)


@runtime_checkable
class Resubmits(Protocol):
    """What a service has besides whose jobs can be sent again, with what the program has saved."""

    one_log: bool
    """Whether its log goes on with the next attempt's, so that a cursor stays good."""

    def prepare_attempt(self, request: JsonObject, attempt: RunAttempt, retries: int) -> JsonObject:
        """Make all ready for an attempt, the second or a later one, and return its request. Called
        again with what it gave if its caller was killed."""


def start_next_attempt(
    run: CarriedRun, submission: Submission, service: Service, observed: Observed, log: Collector
) -> tuple[bool, str]:
    """Have the run's next attempt follow an ended job, if one is to: return whether, and else why
    attempts are over where that is worth saying.

    All lines and event files of the job have been fetched.
    """
    spec, present = submission.spec, run.journal.attempt
    retries = int(str(spec.get("retries") or 0))
    is_stopped = run.stop_wanted() or prompts.is_quit(run.folder)
    failed = observed.state is State.FAILED and not is_stopped
    if not (failed and present.number <= retries and isinstance(service, Resubmits)):
        return False, ""
    reports = last_reports(run.folder, run.journal)
    reports.sort(key=lambda report: report.headline not in observed.error)
    failures = [of_cause(report.cause, place) for place, report in enumerate(reports)]
    has_saved = not observed.cause and has_saved_ahead(run.folder, run.journal)
    cause = TIME_LIMIT if has_saved else observed.cause
    cause = cause or (cause_of(decisive(failures).status) if failures else "")
    causes = spec.get("retried")
    retried = tuple(map(str, causes)) if isinstance(causes, list) else ()
    if not is_retried(cause, retried or RETRIED):
        return False, ""
    attempt = present.next(_standing(run, service, present.began))
    if not attempt.is_of_use:
        return False, attempt.no_retry_reason
    why = observed.error if observed.cause or not failures else headline(decisive(failures), ())
    words = f"{attempt.words(retries)}, after {SAVED_AHEAD if has_saved else _brief(why)}"
    _log.info("%s", words)
    so_far = run.journal.log_size
    journal = replace(run.journal, attempt=attempt, attempt_at=so_far, job="", sent=0.0)
    log.say(words, journal if service.one_log else replace(journal, cursor={}))
    run.put(run.status.enter(State.STARTING, words, note=""))
    run.rest(attempt.pause)
    return True, ""


def prepare_request(run: CarriedRun, submission: Submission, service: Service) -> None:
    """Have the request of the present attempt, unless it has been sent. A carrier may have ended
    within this."""
    journal = run.journal
    if journal.attempt.number > 1 and not run.may_be_there and isinstance(service, Resubmits):
        retries = int(str(submission.spec.get("retries") or 0))
        request = service.prepare_attempt(journal.request or {}, journal.attempt, retries)
        run.keep(replace(journal, request=dict(request)))


def attempt_label(run: CarriedRun, submission: Submission) -> str:
    """Return which attempt it is, behind a comma; empty for the first."""
    attempt = run.journal.attempt
    retries = int(str(submission.spec.get("retries") or 0))
    return f", {attempt.words(retries)}" if attempt.number > 1 else ""


def _standing(run: CarriedRun, service: Service, since: float) -> Headway:
    """Return how far the program has come, by the charts and what is in its checkpoint folder."""
    try:
        stored = service.output.objects(f"{CHECKPOINTS_FOLDER}/")
    except Exception:
        _log.warning("can't look at the checkpoints", exc_info=True)
        stored = ()
    files = (f"{item.name} {item.size} {item.changed}" for item in stored)
    return Headway(highest_step(run.folder / EVENTS_FOLDER, since), digest(files))


def _brief(why: str) -> str:
    """Return the first line, as the end of a sentence: `a node failed`."""
    return why.partition("\n")[0].strip() or f"it ended at {time.strftime('%H:%M')}"


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
