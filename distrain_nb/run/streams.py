"""Open readers of a run: the index of its log, its metrics, step times and resources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock

from distrain_nb.run.log.index import LogIndex
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.worker.files.folder import EVENTS_FOLDER, RESOURCES_FOLDER

KEPT_OPEN = 8


class Scalars:
    """A folder of event files that several threads may ask, one at a time."""

    def __init__(self, events: EventFolder) -> None:
        self._events = events
        self._lock = Lock()

    @contextmanager
    def read(self) -> Iterator[EventFolder]:
        """Read what is new in the folder of events, and lock it while the block uses it."""
        with self._lock:
            self._events.read()
            yield self._events


class Streams:
    """The readers of one run's folder; each costs only what is new."""

    def __init__(self, folder: Path) -> None:
        self.log = LogIndex(folder)
        self.metrics = Scalars(EventFolder(folder / EVENTS_FOLDER))
        self.times = Scalars(StepTimesFolder(folder))
        self.resources = Scalars(EventFolder(folder / RESOURCES_FOLDER))


@lru_cache(maxsize=KEPT_OPEN)
def streams(folder: Path) -> Streams:
    """Return the readers of a run's folder: those of the last few runs are kept."""
    return Streams(folder)
