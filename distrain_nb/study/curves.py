"""What a trial has reported of the goals, as it comes: by event files, or by cloudml-hypertune."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.worker.files.folder import EVENTS_FOLDER, HYPERTUNE_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from distrain_nb.run.metrics.events import Key
    from distrain_nb.run.metrics.records import Points

_OWN = ("", "rank-0")  # series that speak for the whole run
_NOT_METRICS = frozenset(["timestamp", "trial", "global_step", "checkpoint_path"])

# (step, seconds since the epoch, value), by step.
Row = tuple[int, float, float]


class TrialMetrics:
    """The metrics of a run in its folder, of which each `read` takes in what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events = EventFolder(folder / EVENTS_FOLDER)
        self._reports: dict[Path, _Reports] = {}

    def read(self) -> bool:
        """Return whether there was anything new."""
        news = bool(self._events.read())
        for path in sorted(self._folder.glob(HYPERTUNE_FILE.format("*"))):
            news = self._reports.setdefault(path, _Reports(path)).read() or news
        return news

    def rows(self, metric: str) -> list[Row]:
        """Return a metric's values so far, by step: of several for one step the last."""
        found: Iterable[Row] = self._of_events(metric)
        if not found:
            reports = (report.rows(metric) for report in self._reports.values())
            found = next(filter(None, reports), [])
        return sorted({row[0]: row for row in found}.values())

    @property
    def names(self) -> list[str]:
        """Of all metrics that were reported."""
        found = [key.tag for key in self._events.keys]
        found += [name for report in self._reports.values() for name in report.names]
        return list(dict.fromkeys(found))

    def _of_events(self, metric: str) -> list[Row]:
        keys = [key for key in self._events.keys if metric in (key.tag, f"{key.series}/{key.tag}")]
        if not keys:
            return []
        points: Points = self._events.points(min(keys, key=_rank))
        return [(int(p["step"]), float(p["wall_time"]), float(p["value"])) for p in points]


def _rank(key: Key) -> bool:
    return key.series not in _OWN


def curve(rows: Sequence[Row], begin: float | None = None) -> NDArray[np.float64]:
    """Of shape (n, 2): steps, or with `begin` seconds since then, and values."""
    firsts = [row[0] if begin is None else row[1] - begin for row in rows]
    pairs = list(zip(firsts, (row[2] for row in rows), strict=True))
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


class _Reports:
    """The file of cloudml-hypertune: a line of JSON for each of the last 100 reports."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = b""
        self._kept: dict[tuple[str, float], tuple[int, float]] = {}

    def read(self) -> bool:
        try:
            data = self._path.read_bytes()
        except OSError:
            return False
        if data == self._seen:
            return False
        self._seen, before = data, len(self._kept)
        for line in data.splitlines():
            self._take(line)
        return len(self._kept) > before

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self._kept))

    def rows(self, metric: str) -> list[Row]:
        """Reports without a step are numbered as they came."""
        found = [
            (step, time, value)
            for (name, time), (step, value) in sorted(self._kept.items())
            if name == metric
        ]
        if len({row[0] for row in found}) == 1:
            return [(number, time, value) for number, (_, time, value) in enumerate(found)]
        return found

    def _take(self, line: bytes) -> None:
        """One that is half written is read when it is whole."""
        try:
            report: Mapping[str, object] = json.loads(line)
            time, step = float(str(report["timestamp"])), int(str(report["global_step"]))
            for name in report.keys() - _NOT_METRICS:
                self._kept[name, time] = step, float(str(report[name]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return


def last_value(rows: Sequence[Row]) -> float:
    """NaN where there is none."""
    return rows[-1][2] if rows else math.nan
