"""What a rehearsal does before its job runs. It says so itself: a service only gives states."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.worker.files.status import State, Status

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.worker.files.status import Progress


class Doing:
    """The step that the rehearsal of a run's folder is at.

    It is written into the run's status at once for as long as the rehearsal's own services start:
    nobody else writes there before the run is carried. Then the carrier shows it with the state.
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
            status = Status.read(self._folder)
            replace(status, phase=step.phase, progress=self._now).write(self._folder)

    def hand_over(self) -> None:
        """The services are there, and the run is carried from now on."""
        self._now, self._carried = None, True

    def before(self, state: State) -> Progress | None:
        """The step, where a job of that state has not begun to run."""
        return self._now if state in (State.QUEUED, State.STARTING) else None
