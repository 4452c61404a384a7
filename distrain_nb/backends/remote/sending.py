"""A job is sent once, whatever happens to the answer and to the process that sends it.

Before a request goes out it is written down that it does. A process that finds that written, or
whose request gets no answer, asks the service for the job before it does anything else: the run
ends as cancelled, and another request is sent, only if there is none.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.carried import LONGEST_PAUSE_S, Carried, brief
from distrain_nb.backends.remote.service import Unanswered
from distrain_nb.errors import DistrainError
from distrain_nb.image import at_most_every
from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.status import Progress

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import Service

TELL_EVERY_S = 0.3
_log = logging.getLogger(__name__)

ATTEMPTS = 6  # to send a request of which the service then has no job


class Cancelled(Exception):
    """Somebody asked for the end, and the service has no job of this run."""


def send(run: Carried, service: Service) -> None:
    """Whatever is not yet done: stage, create. The journal has the job's name then.

    Raises Cancelled, or DistrainError if the service takes no such job.
    """
    if run.journal.request is None:
        _stage(run, service)
    if not run.journal.job:
        run.show(Progress("submitting"))
    trouble: Exception | None = None
    left = ATTEMPTS
    while not run.journal.job:
        if run.journal.sent:
            job = _look_for(run, service)
            run.keep(replace(run.journal, job=job, sent=run.journal.sent if job else 0.0))
        elif trouble and not (left and isinstance(trouble, Unanswered)):
            raise trouble
        elif run.stop_wanted():
            raise Cancelled
        else:
            left -= 1
            trouble = _create(run, service)
    _log.info("the service has the job: %s", run.journal.job)


def _stage(run: Carried, service: Service) -> None:
    def tell(progress: Progress) -> None:
        if run.stop_wanted():
            raise Cancelled
        run.show(progress)

    listener = at_most_every(TELL_EVERY_S, tell)
    listener(Progress("packaging the code"))
    staged = service.stage(run.folder / PROGRAM_FOLDER, listener)
    run.keep(replace(run.journal, request=dict(staged)))


def _create(run: Carried, service: Service) -> Exception | None:
    """Send the request; what went wrong, unless it was refused, which is raised."""
    request = run.journal.request or {}
    run.keep(replace(run.journal, sent=time.time()))
    try:
        run.keep(replace(run.journal, job=service.create(request)))
    except Unanswered as error:
        run.note(f"no answer; asking whether the service has the job: {brief(error)}", error)
        return error
    except DistrainError:
        run.keep(replace(run.journal, sent=0.0))
        raise
    except Exception as error:
        _log.warning("can't send the request", exc_info=True)
        return error
    return None


def _look_for(run: Carried, service: Service) -> str:
    """Return the job that was sent before; empty when it can't arrive any more."""
    pause = run.pace.look
    while True:
        late = not run.may_arrive
        try:
            job = service.find(run.journal.request or {})
        except Exception as error:
            pause = min(2 * pause, LONGEST_PAUSE_S)
            doing = "can't ask whether the service has the job, trying again"
            run.note(f"{doing}: {brief(error)}", error)
        else:
            if job or late:
                run.note("")
                return job
        run.rest(pause)
