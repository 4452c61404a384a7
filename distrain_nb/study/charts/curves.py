"""Learning curves: what each trial has reported of a goal, step by step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.charts.drawing import SIDE
from distrain_nb.run.summary import short_number
from distrain_nb.study.charts.axes import ValueAxis, goal_axis
from distrain_nb.study.run_curves import POINTS_OF_CURVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from distrain_nb.run.metrics.records import Points
    from distrain_nb.study.trial import StudyTrial

    Numbers = NDArray[np.float64]

POINTS_IN_ALL, FEWEST_POINTS = 8_000, 16
MOST_DECADES = 6  # of values on one logarithmic axis
FAR_OUT = 500  # times as far from the median as the nearer quartile, a value is not drawn


class LearningCurves:
    """The curves of a *goal*, of all trials that have reported it; none where no trial has done so
    more than once."""

    def __init__(self, trials: Sequence[StudyTrial], goal: str, goals: Sequence[str]) -> None:
        count = _count(len(trials))
        curves = [(trial, trial.curves(goals, count).get(goal)) for trial in trials]
        self.name = f"learning curves of {goal}"
        self.points: dict[int, Points] = {
            trial.number: points for trial, points in curves if points is not None and len(points)
        }
        values = np.concatenate(
            [np.empty(0), *(points["value"] for points in self.points.values())]
        )
        values = values[np.isfinite(values)]
        if not len(values) or all(len(points) < 2 for points in self.points.values()):
            self.points = {}
        shown = _without_outliers(values)
        self.is_cut = len(shown) < len(values)
        self.axis = goal_axis(goal, shown.tolist())
        steps = [points["step"][[0, -1]] for points in self.points.values()]
        low, high = (float(np.min(steps)), float(np.max(steps))) if steps else (0.0, 1.0)
        self.across = ValueAxis("step", "linear", low, high)

    def __bool__(self) -> bool:
        return bool(self.points)

    @property
    def note(self) -> str:
        """Say what is not drawn; empty where everything is."""
        shown = f"shown: {short_number(self.axis.low)} to {short_number(self.axis.high)}"
        return shown if self.is_cut else ""

    def path(self, trial: int) -> str:
        """Return a trial's line in a drawing, interrupted where a value has no place."""
        points = self.points[trial]
        across = self.across.shares(points["step"].astype(np.float64)) * SIDE
        up = np.clip(self.axis.shares(points["value"]), -1, 2) * SIDE
        path, goes_on = "", False
        for x, y in zip(across.tolist(), up.tolist(), strict=True):
            if math.isfinite(y):
                path += f"{'L' if goes_on else 'M'}{x:.0f} {SIDE - y:.0f}"
            goes_on = math.isfinite(y)
        return path


def _count(trials: int) -> int:
    """Return how many points a line may have: a power of two, so that few trials more leave it."""
    count = POINTS_OF_CURVE
    while count > FEWEST_POINTS and count * trials > POINTS_IN_ALL:
        count //= 2
    return count


def _without_outliers(values: Numbers) -> Numbers:
    """Return the values without those that would press all others into a line: of trials
    that diverged."""
    if not len(values) or 0 < values.max() <= values.min() * 10**MOST_DECADES:
        return values
    first, middle, third = np.quantile(values, (0.25, 0.5, 0.75))
    room = FAR_OUT * min(middle - first, third - middle)  # of the better half, whichever it is
    return values[np.abs(values - middle) <= room] if room else values
