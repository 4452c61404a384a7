"""A custom job or a tuning job as the service shows it, from its first state to its last."""

from __future__ import annotations

import copy
import logging
import threading
from datetime import datetime, timezone
from typing import Any

from google.cloud.aiplatform_v1 import types

# typed as the integers that they are in the protocol, where fields want the enum
States: Any = types.JobState
ENDED = (
    States.JOB_STATE_SUCCEEDED,
    States.JOB_STATE_FAILED,
    States.JOB_STATE_CANCELLED,
)

_log = logging.getLogger(__name__)


def now() -> Any:
    """Return the time as the fields of the protocol take it."""
    return datetime.now(timezone.utc)


class JobResource:
    """The message of a job. Safe to use from several threads."""

    def __init__(self, requested: Any, name: str, state: Any) -> None:
        self.name = name
        self._message = copy.deepcopy(requested)
        self._message.name, self._message.state = name, state
        self._message.create_time = self._message.update_time = now()
        self._lock = threading.Lock()

    def message(self) -> Any:
        """Return a copy of the job as it stands."""
        with self._lock:
            return copy.deepcopy(self._message)

    def cancel(self) -> bool:
        """Enter the state of a job that is being cancelled, unless it has ended. Return whether."""
        with self._lock:
            if self._message.state in ENDED:
                return False
            self._enter(States.JOB_STATE_CANCELLING)
            return True

    def enter(self, state: Any, error: str = "") -> None:
        """Enter a state. A job that is being cancelled enters only its last."""
        with self._lock:
            if self._message.state != States.JOB_STATE_CANCELLING or state in ENDED:
                self._enter(state, error)

    def _enter(self, state: Any, error: str = "") -> None:
        job = self._message
        if job.state == state:
            return
        job.state, job.update_time = state, now()
        _log.info("%s: %s", self.name, error or States(state).name)
        if state == States.JOB_STATE_RUNNING and not job.start_time:
            job.start_time = job.update_time
        if state in ENDED:
            job.end_time = job.update_time
        if error:
            job.error = {"code": 3, "message": error}
