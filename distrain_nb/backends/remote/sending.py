"""The sending of a job: once, whatever happens to the answer and to the process that sends it.

Before a request goes out, the journal records it. A process that reads such a record, or gets no
answer to its request, first asks the service for the job. Only if the service has no such job, the
run ends as cancelled or another request is sent.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, CarriedRun, error_line
from distrain_nb.backends.remote.service import Service, Unanswered
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.status import Progress

_log = logging.getLogger(__name__)

TELL_EVERY_S = 0.3
ATTEMPTS = 6  # to send a request of which the service then has no job


class Cancelled(Exception):
    """Somebody asked for the end, and the service has no job of this run."""


def send(run: CarriedRun, service: Service) -> None:
    """Whatever is not yet done: stage, create. The journal has the job's name then.

    Raises Cancelled, or DistrainError if the service takes no such job.
    """
    stage(run, service)
    if not run.journal.job:
        run.show(Progress("submitting"))
    trouble: Exception | None = None
    attempts = ATTEMPTS
    while not run.journal.job:
        if run.journal.sent:
            job = _look_for(run, service)
            run.keep(replace(run.journal, job=job, sent=run.journal.sent if job else 0.0))
        elif trouble and not (attempts and isinstance(trouble, Unanswered)):
            raise trouble
        elif run.stop_wanted():
            raise Cancelled
        else:
            attempts -= 1
            trouble = _create(run, service)
    _log.info("the service has the job: %s", run.journal.job)


def stage(run: CarriedRun, service: Service) -> None:
    """Stage the code, unless that has been done. Raises Cancelled."""
    if run.journal.request is not None:
        return

    def tell(progress: Progress) -> None:
        if run.stop_wanted():
            raise Cancelled
        run.show(progress)

    listener = at_most_every(TELL_EVERY_S, tell)
    listener(Progress("packaging the code"))
    staged = service.stage(run.folder / PROGRAM_FOLDER, listener)
    run.keep(replace(run.journal, request=dict(staged)))


def _create(run: CarriedRun, service: Service) -> Exception | None:
    """Send the request; what went wrong, unless it was refused, which is raised."""
    request = run.journal.request or {}
    run.keep(replace(run.journal, sent=time.time()))
    try:
        run.keep(replace(run.journal, job=service.create(request)))
    except Unanswered as error:
        run.note(f"no answer; asking whether the service has the job: {error_line(error)}", error)
        return error
    except DistrainError:
        run.keep(replace(run.journal, sent=0.0))
        raise
    except Exception as error:
        _log.warning("can't send the request", exc_info=True)
        return error
    return None


def _look_for(run: CarriedRun, service: Service) -> str:
    """Return the job that was sent before; empty when it can't arrive any more."""
    pause = run.pace.look
    while True:
        late = not run.may_arrive
        try:
            job = service.find(run.journal.request or {})
        except Exception as error:
            pause = min(2 * pause, LONGEST_PAUSE_S)
            doing = "can't ask whether the service has the job, trying again"
            run.note(f"{doing}: {error_line(error)}", error)
        else:
            if job or late:
                run.note("")
                return job
        run.rest(pause)
