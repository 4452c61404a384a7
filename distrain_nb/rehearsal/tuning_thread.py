"""A tuning job of a stand-in: the loop of its trials, on a thread of its own."""

from __future__ import annotations

import threading
from abc import abstractmethod
from contextvars import copy_context
from typing import Literal

from distrain_nb.rehearsal.job_thread import JobThread
from distrain_nb.tuning.engine import SearchEngine
from distrain_nb.tuning.loop import COUNTED, T, TrialLoop
from distrain_nb.tuning.spec import StudySpec

_LOOK_EVERY_S = 0.2


class TuningThread(JobThread, TrialLoop[T]):
    """The trials of a tuning job. `failure` is why it ends before it has all of them."""

    def __init__(self, name: str, spec: StudySpec, engine: SearchEngine, earlier: int = 0) -> None:
        JobThread.__init__(self, name, copy_context())
        TrialLoop.__init__(self, spec, engine, earlier)
        self.failure = ""
        self._abandoned = threading.Event()

    @abstractmethod
    def finish(self, end: Literal["succeeded", "failed", "cancelled"], reason: str = "") -> None:
        """Enter the last state. A job of which no trial succeeded has failed without a `reason`."""

    def run(self) -> None:
        try:
            ended = self.run_trials()
        except Exception:
            for trial in self.active():
                self.stop(trial, "")
            raise
        if not ended:
            return
        if self.cancelled.is_set():
            self.finish("cancelled")
        elif self.failure or not self.with_ending(*COUNTED):
            self.finish("failed", self.failure)
        else:
            self.finish("succeeded")

    def fail(self, reason: str) -> None:
        self.finish("failed", reason)

    def abandon(self) -> None:
        """Look after it no more: its trials are for others to end."""
        self._abandoned.set()
        self.join()

    def rest(self) -> bool:
        return not self._abandoned.wait(_LOOK_EVERY_S)
