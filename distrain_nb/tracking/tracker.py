"""The interface of a tracker to the process that mirrors runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from distrain_nb.worker.files.status import State
from distrain_nb.worker.files.tracked import Tracked

if TYPE_CHECKING:
    from distrain_nb.tracking.request import TrackingRequest


class Sample(NamedTuple):
    """One value of a metric; `time` is in milliseconds since the epoch."""

    metric: str
    step: int
    time: int
    value: float


class NotYet(Exception):
    """A run needs something in the tracker that is not there yet; why, if that is known."""


class TooLate(Exception):
    """The tracker that a run was for has ended."""


class TrackedRun(Protocol):
    """A run on a tracker. Every method raises what the tracker's client does."""

    tracked: Tracked

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Write the run's parameters and tags."""

    def add_parameters(self, parameters: Mapping[str, str]) -> None:
        """Add those parameters whose names the run doesn't have yet."""

    def log(self, samples: Iterable[Sample]) -> None:
        """Log all samples, in their order."""

    def missing(self, samples: Iterable[Sample]) -> Iterable[Sample]:
        """Return those of the samples that are still to be logged."""

    def keep(self, path: Path, below: str) -> None:
        """Store a file, or all files of a folder, where the tracker keeps files."""

    def end(self, state: State, time: float, bests: Mapping[str, float]) -> None:
        """End the run; `time` in seconds since the epoch, `bests` are the best values of its
        metrics."""

    def drop_doubles(self, key: str) -> None:
        """Delete other runs of that key, which a process made whose answer never came."""


class Tracker(Protocol):
    """A tracker at an address."""

    def run(self, request: TrackingRequest, parent: str) -> tuple[TrackedRun, bool]:
        """Return the run of a request, and whether it was there before: made if there is none.
        Raises NotYet, TooLate, and what the tracker's client does."""

    def existing(self, request: TrackingRequest, tracked: Tracked) -> TrackedRun:
        """Return a run that was found or made before. Raises as `run` does."""

    def abandon(self, request: TrackingRequest) -> None:
        """End the run of one of ours that was deleted before it had ended."""

    def status(self, error: Exception) -> int:
        """Return the HTTP status of what was refused; 0 for anything else."""

    def out_of_reach(self, error: BaseException) -> bool:
        """Return whether nobody answered, rather than that somebody refused."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, and what is behind it in turn."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
