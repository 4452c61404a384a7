"""The files with the step times of a run's ranks, read as charts and as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.events import EventFolder, Key, event_files, file_size
from distrain_nb.run.metrics.rank_times import RankTimes, StepTimes
from distrain_nb.run.metrics.records import POINT, Points
from distrain_nb.run.metrics.step_findings import findings_of, sentence_of
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics.step_times import (
    COMPUTE,
    DATA,
    FACTS,
    GRADIENT_BYTES,
    LOADER_WORKERS,
    STEPS,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from distrain_nb.run.metrics.slow_ranks import SlowRanks

    Numbers = NDArray[np.float64]

MOST_IN_ORDER = 12  # ranks: of more, the charts of late ones come first, below a heat map


class StepTimesFolder(EventFolder):
    """Step times as charts: one for each rank, with the milliseconds of each kind as its lines.

    All lines of a rank have the same steps, so that they can be stacked.
    """

    stacked = True

    def __init__(self, run_folder: Path) -> None:
        super().__init__(run_folder / EVENTS_FOLDER / STEP_TIMES_FOLDER)
        # As of the last read, which a page asks about many times.
        self._shown: tuple[Key, ...] | None = None
        self._times: StepTimes | None = None

    def read(self) -> dict[Key, Points]:
        series = {key.series for key in super().read()}
        if not series:
            return {}
        self._shown = self._times = None
        return {key: self.points(key) for key in self.keys if _series_of(key) in series}

    @property
    def keys(self) -> tuple[Key, ...]:
        if self._shown is None:
            late = self.times().late if len(self.times().ranks) > MOST_IN_ORDER else {}

            def order(key: Key) -> tuple[bool, int]:
                rank = _rank_of(key.series)
                return rank not in late, rank

            keys = sorted(super().keys, key=order)
            shown = [key for key in keys if key.tag not in FACTS and self._is_shown(key)]
            titles = {key.series: f"ms a step, {key.series.replace('-', ' ')}" for key in shown}
            self._shown = tuple(Key(key.tag, titles[key.series]) for key in shown)
        return self._shown

    @property
    def slow(self) -> SlowRanks | None:
        times = self.times()
        return times.slow if len(times.ranks) > MOST_IN_ORDER else None

    def _is_shown(self, key: Key) -> bool:
        return key.tag in (DATA, COMPUTE) or bool(super().points(key)["value"].any())

    def points(self, key: Key) -> Points:
        series = _series_of(key)
        rows = super().points(Key(series, STEPS)).astype(POINT)
        rows["value"] = 1000 * self.column(series, key.series)
        return rows[1:] if len(rows) > 1 else rows  # the first step would dwarf all others

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._sentences(), *super().notes)

    def _sentences(self) -> list[str]:
        times = self.times()
        return [sentence_of(times), *(f.message for f in findings_of(times))] if times.ranks else []

    def column(self, series: str, tag: str) -> Numbers:
        """Return one number for each window of a rank: 0 where a window doesn't have it."""
        windows = super().points(Key(series, STEPS))["step"]
        values = np.zeros(len(windows))
        if Key(series, tag) in self._lines:
            points = super().points(Key(series, tag))
            places = np.searchsorted(windows, points["step"])
            within = places < len(windows)
            values[places[within]] = points["value"][within]
        return values

    def times(self) -> StepTimes:
        """Return the times of all ranks that there are so far."""
        if self._times is None:
            tags: dict[str, list[str]] = {}
            for key in super().keys:
                tags.setdefault(key.series, []).append(key.tag)
            ranks = {
                _rank_of(of): self._rank(of, all_) for of, all_ in tags.items() if STEPS in all_
            }
            self._times = StepTimes({n: ranks[n] for n in sorted(ranks) if ranks[n].steps})
        return self._times

    def _rank(self, series: str, all_tags: Iterable[str]) -> RankTimes:
        tags = [tag for tag in all_tags if tag not in FACTS]
        windows = super().points(Key(series, STEPS))
        ends = windows["step"].astype(np.float64)
        counts = self.column(series, STEPS)
        # The first window is the first step. A job that was restarted counts from 1 again.
        first = int(np.flatnonzero(np.diff(ends, prepend=np.inf) < 0)[-1]) + 1 if len(ends) else 0
        last = [self.column(series, tag)[-1:] for tag in (LOADER_WORKERS, GRADIENT_BYTES)]
        return RankTimes(
            ends[first:],
            counts[first:],
            {tag: self.column(series, tag)[first:] for tag in tags},
            windows["wall_time"][first:],
            *(int(value[0]) if len(value) else 0 for value in last),
        )


def step_times(run_folder: Path) -> StepTimes:
    """Return the step times of the run in this folder, as far as they are written."""
    folder = StepTimesFolder(run_folder)
    files = sorted(event_files(folder.path))
    return _read(run_folder, tuple((str(path), file_size(path)) for path in files))


@lru_cache(maxsize=64)
def _read(run_folder: Path, files: tuple[tuple[str, int], ...]) -> StepTimes:  # noqa: ARG001
    """Read again where a file has grown."""
    folder = StepTimesFolder(run_folder)
    folder.read()
    return folder.times()


def _series_of(key: Key) -> str:
    return f"rank-{key.tag.rpartition(' ')[2]}"


def _rank_of(series: str) -> int:
    number = series.rpartition("-")[2]
    return int(number) if number.isdigit() else -1
