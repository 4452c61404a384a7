"""The metrics of a run as the lines of its charts: at most so many points each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.downsample import thin
from distrain_nb.run.metrics.events import EventFolder, Key
from distrain_nb.run.metrics.gaps import Gaps, gaps
from distrain_nb.run.metrics.non_scalars import NonScalars
from distrain_nb.worker.files.folder import EVENTS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from distrain_nb.run.metrics.records import Points
    from distrain_nb.run.metrics.slow_ranks import SlowRanks

    Numbers = NDArray[np.float32] | NDArray[np.float64]


POINTS_SHOWN = 1_000
_EXACT_IN_FLOAT32 = 1 << 24


@dataclass(frozen=True)
class ChartLine:
    """One series of one metric: `x` is the step, `last` the newest value of all `count` points.

    `began` is the wall time of the first point, in seconds since the epoch, and `seconds` what had
    passed since then at each point. From `low` to `high` are the values of all points around each.
    `gaps` are those of all points.
    """

    x: Numbers
    y: NDArray[np.float32]
    last: float
    began: float
    seconds: NDArray[np.float32]
    count: int
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    gaps: Gaps | None = None

    @property
    def is_thinned(self) -> bool:
        """Whether points are left out."""
        return len(self.x) < self.count


class Metrics:
    """The metrics in the event files of a run, `below` its folder, so far; `command` shows them
    live.

    `events` are those files where somebody reads them already.
    """

    stacked = False  # whether the lines of a chart are parts of a whole
    in_bands = True  # many series are a band: they are ranks of one run
    has_displays = True  # of its ranks, beside the event files
    family: Callable[[str], str] | None = None  # of several: the run of a series

    def __init__(
        self, folder: Path, below: str = EVENTS_FOLDER, events: EventFolder | None = None
    ) -> None:
        self.folder = folder
        self.command = f"%distrain attach {folder.name}"
        self._events = events or EventFolder(folder / below)
        self.stacked = self._events.stacked

    def read(self) -> tuple[Key, ...]:
        """Read what is new, and name the lines that have changed."""
        return tuple(self._events.read())

    @property
    def tags(self) -> tuple[str, ...]:
        """Every metric, in order of first appearance."""
        return tuple(dict.fromkeys(key.tag for key in self._events.keys))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._events.keys)

    @property
    def notes(self) -> tuple[str, ...]:
        return self._events.notes

    @property
    def non_scalars(self) -> NonScalars:
        """What there is besides scalars."""
        return self._events.non_scalars

    @property
    def slow(self) -> SlowRanks | None:
        """The ranks that take longer than the others, where there are many."""
        return self._events.slow

    def line(self, key: Key, points: int = POINTS_SHOWN) -> ChartLine:
        """Return the line downsampled so that its peaks stay, to `points` points at most."""
        return chart_line(self._events.points(key), points)

    def last(self) -> dict[str, float]:
        """Return the newest value of each metric. Of several series the first counts, or all where
        they are parts of a whole."""
        newest: dict[str, float] = {}
        for key in self._events.keys:
            points = self._events.points(key)
            if len(points) and (self.stacked or key.tag not in newest):
                newest[key.tag] = newest.get(key.tag, 0.0) + float(points["value"][-1])
        return newest


class OverlaidMetrics(Metrics):
    """The metrics of several runs as those of one, with the run as the series: `runs` has them by
    the titles of the runs."""

    in_bands = False  # the reader has chosen each run
    has_displays = False

    def __init__(self, runs: Mapping[str, Metrics]) -> None:
        self._runs = runs
        self.family = self._run_of
        numbers = " ".join(metrics.folder.name for metrics in runs.values())
        self.command = f"%distrain compare {numbers}"
        self._place()

    def _place(self) -> None:
        self._places = {
            Key(line_name(name, key.series), key.tag): (metrics, key)
            for name, metrics in self._runs.items()
            for key in metrics.keys
        }

    def _run_of(self, series: str) -> str:
        """Return the title of the run that a line is of; a title may itself have a slash."""
        return max((name for name in self._runs if series.startswith(name)), key=len)

    def read(self) -> tuple[Key, ...]:
        stale = tuple(
            Key(line_name(name, key.series), key.tag)
            for name, metrics in self._runs.items()
            for key in metrics.read()
        )
        self._place()
        return stale

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.tag for key in self._places))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._places)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for metrics in self._runs.values() for note in metrics.notes)

    @property
    def slow(self) -> SlowRanks | None:
        """Nothing: each run has ranks of its own."""
        return None

    @property
    def non_scalars(self) -> NonScalars:
        """Nothing: only scalars are laid over each other."""
        return NonScalars()

    def line(self, key: Key, points: int = POINTS_SHOWN) -> ChartLine:
        metrics, key_there = self._places[key]
        return metrics.line(key_there, points)

    def last(self) -> dict[str, float]:
        """Return no newest values: what is newest in one run is not what is newest in all."""
        return {}


def line_name(title: str, series: str) -> str:
    """Return the name of a series of one of several runs: `night #3/rank-0`."""
    return "/".join(filter(None, (title, series)))


def chart_line(points: Points, count: int) -> ChartLine:
    """Return the line of these points, downsampled."""
    if not len(points):
        none = np.empty(0, np.float32)
        return ChartLine(none, none, float("nan"), 0.0, none, 0, none, none)
    last, began = float(points["value"][-1]), float(points["wall_time"][0])
    began = began if math.isfinite(began) else 0.0
    thinned, low, high = thin(points, count)
    x = _steps(thinned["step"])
    seconds = (thinned["wall_time"] - began).astype(np.float32)
    with np.errstate(over="ignore"):
        value, lowest, highest = (part.astype(np.float32) for part in (thinned["value"], low, high))
    return ChartLine(x, value, last, began, seconds, len(points), lowest, highest, gaps(points))


def _steps(steps: NDArray[np.int64]) -> Numbers:
    if np.abs(steps).max() < _EXACT_IN_FLOAT32:
        return steps.astype(np.float32)
    return steps.astype(np.float64)
