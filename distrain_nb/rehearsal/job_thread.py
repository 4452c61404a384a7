"""A job of a stand-in on its way to its last state, on a thread of its own."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from distrain_nb.errors import DistrainError
from distrain_nb.rehearsal.failures import JobFailed

if TYPE_CHECKING:
    from contextvars import Context

_log = logging.getLogger(__name__)


class JobThread(ABC):
    """Runs a job; its steps are reported in the context `steps`.

    `cancelled` is set once somebody has asked for its end.
    """

    internal: ClassVar[str] = "Internal error"  # what the service calls an error of its own

    def __init__(self, name: str, steps: Context) -> None:
        self.name = name
        self.cancelled = threading.Event()
        self._thread = threading.Thread(target=steps.run, args=(self._run,), name=name, daemon=True)

    @abstractmethod
    def run(self) -> None:
        """Take the job to its last state. Raises JobFailed with the reason if it fails."""

    @abstractmethod
    def fail(self, reason: str) -> None:
        """Enter the last state of a job that has failed."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self.run()
        except JobFailed as failure:
            self.fail(str(failure))
        except DistrainError as error:
            self.fail(f"{self.internal}: {error}")
        except Exception as error:  # whatever it was, the job must not seem to run for ever
            _log.exception("the job %s can't go on", self.name)
            self.fail(f"{self.internal}: {error!r}")
