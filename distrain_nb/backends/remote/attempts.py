"""A job that has failed is sent again, as the run's next attempt: by its carrier, nobody else.

Services that could do so by themselves are told not to: one of the two counts. Which ends are worth
it, and when attempts are of no more use, `worker/supervisor/retries.py` says.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Protocol, runtime_checkable

from distrain_nb.backends.remote.carried import CarriedRun
from distrain_nb.backends.remote.collector import Collector
from distrain_nb.backends.remote.service import Observed, Service
from distrain_nb.backends.remote.submission import Submission
from distrain_nb.backends.remote.worker_reports import has_saved_ahead, last_reports
from distrain_nb.types import JsonObject
from distrain_nb.worker.files import prompts
from distrain_nb.worker.files.failure import cause_of, decisive, headline, of_cause
from distrain_nb.worker.files.folder import CHECKPOINTS_FOLDER, EVENTS_FOLDER
from distrain_nb.worker.files.status import State
from distrain_nb.worker.supervisor.retries import (
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
    present, retries = run.journal.attempt, submission.retries
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
    if not is_retried(cause, submission.retried):
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
        attempt, retries = journal.attempt, submission.retries
        request = service.prepare_attempt(journal.request or {}, attempt, retries)
        run.keep(replace(journal, request=dict(request)))


def attempt_label(run: CarriedRun, submission: Submission) -> str:
    """Return which attempt it is, behind a comma; empty for the first."""
    attempt = run.journal.attempt
    return f", {attempt.words(submission.retries)}" if attempt.number > 1 else ""


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
