"""Progress of a build, and the listener that hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from distrain_nb.errors import ImageError
from distrain_nb.worker.files.status import Progress

Listener = Callable[[Progress], None]


def at_most_every(seconds: float, listener: Listener) -> Listener:
    """Return a listener that passes on at most one event in so many seconds.

    It passes on the begin of every phase and every end at once.
    """
    phase, due = "", 0.0

    def hear(event: Progress) -> None:
        nonlocal phase, due
        now = time.monotonic()
        if event.phase != phase or event.done == event.total or now >= due:
            phase, due = event.phase, now + seconds
            listener(event)

    return hear


class Stopped(ImageError):
    """The sending of an image ended because another part failed, or by an interrupt."""


class Meter:
    """Adds up the bytes of several threads, and tells a listener after each piece."""

    def __init__(self, listener: Listener | None, phase: str) -> None:
        self._listener = listener
        self._phase = phase
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0
        self._stopped = False

    @property
    def done(self) -> int:
        """The bytes sent so far."""
        return self._done

    def expect(self, more: int) -> None:
        """Add *more* bytes to the total."""
        self._report(0, more)

    def sent(self, more: int) -> None:
        """Count *more* bytes as sent.

        The number is negative if they must be sent again.

        After `stop`, this raises Stopped in the threads that still send.
        """
        if self._stopped and more > 0:
            raise Stopped("The image was not sent: its other parts failed.")
        self._report(more, 0)

    def stop(self) -> None:
        """End every thread that sends, at its next piece."""
        self._stopped = True

    def _report(self, done: int, total: int) -> None:
        with self._lock:
            self._done += done
            self._total += total
            if self._listener is not None:
                self._listener(Progress(self._phase, self._done, self._total))


def announce(listener: Listener | None, phase: str) -> None:
    """Announce a phase."""
    if listener is not None:
        listener(Progress(phase))
