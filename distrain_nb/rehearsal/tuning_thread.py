"""A tuning job of a stand-in: the loop of its trials, on a thread of its own."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod

from distrain_nb.tuning.engine import SearchEngine
from distrain_nb.tuning.loop import T, TrialLoop
from distrain_nb.tuning.spec import StudySpec

_log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2


class TuningThread(TrialLoop[T]):
    """The trials of a tuning job. `cancelled` is set once somebody has asked for its end."""

    def __init__(self, name: str, spec: StudySpec, engine: SearchEngine, earlier: int = 0) -> None:
        super().__init__(spec, engine, earlier)
        self.name = name
        self.cancelled = threading.Event()
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def end(self) -> None:
        """Enter the last state, as no trial goes on and none is wanted."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """Enter the state of a job that an error of the rehearsal has ended."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def abandon(self) -> None:
        """Look after it no more: its trials are for others to end."""
        self._abandoned.set()
        self.join()

    def rest(self) -> bool:
        return not self._abandoned.wait(LOOK_EVERY_S)

    def _run(self) -> None:
        try:
            if self.run_trials():
                self.end()
        except Exception as error:  # whatever it was, the job must not seem to run for ever
            _log.exception("the tuning job %s can't go on", self.name)
            for trial in self.active():
                self.stop(trial, "")
            self.fail(error)
