"""What a trial reports of its goals: the file of `cloudml-hypertune`, curves, and final values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.tuning.spec import StudySpec

if TYPE_CHECKING:
    from distrain_nb.tuning.stopping import Curve

_NOT_METRICS = frozenset(["timestamp", "trial", "global_step", "checkpoint_path"])
_LAST_TIME = 1e11  # the last second of a protobuf timestamp is 2.5e11
_LAST_STEP = 1 << 63

# (step, seconds since the epoch, value), by step.
Row = tuple[int, float, float]


class HypertuneReports:
    """The reports of `cloudml-hypertune`, whose file has the last 100 of them: a line of JSON each.

    As an iterable: the step, time, metric and value of each, in the order of their arrival.
    """

    def __init__(self) -> None:
        self._data = b""
        self._reports: dict[tuple[str, float], tuple[int, float]] = {}

    def take(self, data: bytes) -> bool:
        """Take in the file as it is now. Return whether it has new reports."""
        before = len(self._reports)
        if data != self._data:
            self._data = data
            for line in data.splitlines():
                self._take_line(line)
        return len(self._reports) > before

    def __iter__(self) -> Iterator[tuple[int, float, str, float]]:
        for (name, time), (step, value) in self._reports.items():
            yield step, time, name, value

    @property
    def names(self) -> list[str]:
        """The metrics that were reported."""
        return list(dict.fromkeys(name for name, _ in self._reports))

    def values(self, metric: str) -> list[float]:
        """Return a metric's values in the order of their arrival."""
        return [value for _, _, name, value in self if name == metric]

    def rows(self, metric: str) -> list[Row]:
        """Return a metric's reports. Those of a program that names no steps are numbered."""
        rows = sorted((time, step, value) for step, time, name, value in self if name == metric)
        without_steps = len(rows) > 1 and len({step for _, step, _ in rows}) == 1
        numbered = [(n if without_steps else row[1], row[0], row[2]) for n, row in enumerate(rows)]
        return by_step(numbered)

    def _take_line(self, line: bytes) -> None:
        """Take in one report. One that is half written is taken when it is whole."""
        try:
            report: Mapping[str, object] = json.loads(line)
            time, step = float(str(report["timestamp"])), int(str(report["global_step"]))
            if 0 <= time < _LAST_TIME and 0 <= step < _LAST_STEP:
                for name in report.keys() - _NOT_METRICS:
                    self._reports[name, time] = step, float(str(report[name]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return


def by_step(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by step, and keep the last of several for one step."""
    return sorted({row[0]: row for row in rows}.values())


def curve(rows: Sequence[Row], begin: float | None = None) -> Curve:
    """Return an array of shape (n, 2): steps, or with `begin` seconds since then, and values."""
    firsts = [row[0] if begin is None else row[1] - begin for row in rows]
    pairs = list(zip(firsts, (row[2] for row in rows), strict=True))
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def final_values(spec: StudySpec, values_of: Callable[[str], Sequence[float]]) -> dict[str, float]:
    """Return the value of each goal that was reported: the last, or the best where that counts."""
    final = {}
    for goal in spec.goals:
        values = values_of(goal.metric)
        finite = [value for value in values if math.isfinite(value)]
        if finite and spec.measurement == "best":
            final[goal.metric] = min(finite) if goal.direction == "min" else max(finite)
        elif values:
            final[goal.metric] = values[-1]
    return final
