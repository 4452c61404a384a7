"""The step that a rehearsal is at before its job runs. The rehearsal says so itself: a service only
gives states."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from distrain_nb.worker.files.status import Owner, Progress, State, Status


class RehearsalStep:
    """The step that the rehearsal of a run's folder is at.

    It is written into the run's status at once for as long as the rehearsal's own services start,
    with this process as who answers for the run: nobody else writes there before it is carried.
    Then the carrier shows it with the state.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._carried = False
        self._now: Progress | None = None

    def hear(self, step: Progress) -> None:
        """Take note of a step, from any thread."""
        before = self._now
        since = before.since if before and before.phase == step.phase else time.time()
        self._now = replace(step, since=since)
        if not self._carried:
            status = replace(Status.read(self._folder), phase=step.phase, progress=self._now)
            replace(status, supervisor=Owner.of(os.getpid())).write(self._folder)

    def hand_over(self) -> None:
        """Start carrying the run: the services are there."""
        self._now, self._carried = None, True

    def before(self, state: State) -> Progress | None:
        """Return the step, where a job of that state has not begun to run."""
        return self._now if state in (State.QUEUED, State.STARTING) else None
