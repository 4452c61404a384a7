"""Early stopping: whether a trial that is running is worth going on with, from the curves so far.

A curve is an array of shape (n, 2): steps, or seconds since the trial began, in rising order, and
the value of the goal at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from distrain_nb.errors import OptionError
from distrain_nb.tuning.spec import DecayCurveStopping, Direction, MedianStopping, Stopping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Curve: TypeAlias = NDArray[np.float64]

FEWEST_TRIALS = 3  # that have ended, before any is stopped
UNLIKELY = 0.02  # the chance to become the best with which a trial goes on
GRID = 16  # points that the regression has of each curve
FEWEST_POINTS = 3  # of those, before a curve is continued

# Shares of the variance that stay and that decay, how long that takes as a part of the whole, and
# the noise.
_CANDIDATES = [
    (stays, decay, noise)
    for stays in (0.1, 0.3, 1.0, 3.0)
    for decay in (0.03, 0.1, 0.3, 1.0)
    for noise in (1e-4, 1e-3, 1e-2, 1e-1)
]


def check(stopping: Stopping | None, goals: int) -> None:
    """Raise OptionError for a rule that trials on this machine can't be stopped by."""
    if stopping is None:
        return
    if not isinstance(stopping, (MedianStopping, DecayCurveStopping)):
        name = "hyperband" if "Hyperband" in type(stopping).__name__ else "convex"
        raise OptionError(f"--stop {name} is not known on this machine: median and decay-curve are")
    if goals > 1:
        raise OptionError("--stop needs one goal: of several, none says which trial is the worse")


def reason_to_stop(
    stopping: Stopping, direction: Direction, curve: Curve, ended: Sequence[Curve]
) -> str:
    """Return why a trial with that curve is to be stopped, beside trials that have ended; empty if
    not.

    `ended` are those that came to their own end, or were stopped.
    """
    sign = 1.0 if direction == "max" else -1.0
    own_curve = _upward(curve, sign)
    curves = [trial for trial in (_upward(c, sign) for c in ended) if len(trial)]
    if not len(own_curve) or len(curves) < FEWEST_TRIALS:
        return ""
    if isinstance(stopping, MedianStopping):
        return _below_median(own_curve, curves, sign)
    if isinstance(stopping, DecayCurveStopping):
        return _beyond_hope(own_curve, curves, sign)
    return ""


def _upward(curve: Curve, sign: float) -> Curve:
    """Turn a curve so that larger is better; leave out what is not finite."""
    points = np.asarray(curve, dtype=np.float64).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    return np.column_stack([points[:, 0], sign * points[:, 1]])


def _below_median(curve: Curve, curves: Sequence[Curve], sign: float) -> str:
    """Say why Vertex AI's median rule stops a curve; empty if it doesn't.

    The best value is strictly below the median of the others' running averages, up to the same
    step.
    """
    until = curve[-1, 0]
    averages = [float(c[c[:, 0] <= until, 1].mean()) for c in curves if c[0, 0] <= until]
    if len(averages) < FEWEST_TRIALS:
        return ""
    best, median = float(curve[:, 1].max()), float(np.median(averages))
    if best >= median:
        return ""
    return (
        f"its best value so far, {sign * best:.4g}, is worse than the median of the others' "
        f"averages, {sign * median:.4g}"
    )


def _beyond_hope(curve: Curve, curves: Sequence[Curve], sign: float) -> str:
    """Say why Vertex AI's decay rule stops a curve; empty if it doesn't.

    A Gaussian process continues the curve, and the chance is very low that its end exceeds the
    best value so far.
    """
    horizon = max(c[-1, 0] for c in curves)
    complete = [c for c in curves if c[-1, 0] >= 0.9 * horizon]
    if len(complete) < FEWEST_TRIALS or curve[-1, 0] >= horizon:
        return ""
    best = max(float(c[-1, 1]) for c in complete)
    mean, deviation = Continuation.of(complete).end(curve)
    chance = 0.5 * (1 - erf((best - mean) / deviation / sqrt(2)))
    if chance >= UNLIKELY:
        return ""
    return (
        f"it would end at {sign * mean:.4g} ± {deviation:.2g}, and has a chance of "
        f"{100 * chance:.2g} % to beat the best value, {sign * best:.4g}"
    )


@dataclass(frozen=True)
class Continuation:
    """A Gaussian process of curves: what they have in common, and how each departs from that.

    Departures are an offset for good and one that decays, as in freeze-thaw optimization (Swersky,
    Snoek, Adams 2014): `kernel` is their covariance at `times`, `common` the mean curve there.
    """

    times: NDArray[np.float64]
    common: NDArray[np.float64]
    kernel: NDArray[np.float64]
    noise: float
    trials: int

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Continuation:
        """Return the process that explains these curves best, of some."""
        begin = max(float(c[0, 0]) for c in curves)
        end = max(float(c[-1, 0]) for c in curves)
        times = np.linspace(begin, end, GRID)
        values = np.array([np.interp(times, c[:, 0], c[:, 1]) for c in curves])
        common = values.mean(axis=0)
        departures = values - common
        spread = max(float(departures.var()), 1e-12)
        best = max(
            (_fitted(times, departures, spread, *candidate) for candidate in _CANDIDATES),
            key=lambda fit: fit[0],
        )
        return cls(times, common, best[1], best[2], len(curves))

    def end(self, curve: Curve) -> tuple[float, float]:
        """Return mean and standard deviation of a curve's value at the last of the times."""
        observed = np.flatnonzero((self.times >= curve[0, 0]) & (self.times <= curve[-1, 0]))
        if len(observed) < FEWEST_POINTS:
            return float(self.common[-1]), float("inf")
        values = np.interp(self.times[observed], curve[:, 0], curve[:, 1]) - self.common[observed]
        covariance = self.kernel[np.ix_(observed, observed)] + self.noise * np.eye(len(observed))
        across = self.kernel[-1, observed]
        weights = np.linalg.solve(covariance, across)
        # The mean curve is itself the mean of a few.
        variance = (self.kernel[-1, -1] - across @ weights) * (1 + 1 / self.trials) + self.noise
        return float(self.common[-1] + weights @ values), sqrt(max(float(variance), 1e-24))


def _fitted(
    times: NDArray[np.float64],
    departures: NDArray[np.float64],
    spread: float,
    stays: float,
    decay: float,
    noise: float,
) -> tuple[float, NDArray[np.float64], float]:
    """Return how likely the departures are (the logarithm, but for a constant), the covariance and
    the noise with which they are."""
    passed = (times - times[0]) / max(times[-1] - times[0], 1e-12)
    decaying = decay / (passed[:, None] + passed[None, :] + decay)
    kernel = spread * (stays + decaying)
    covariance = kernel + spread * noise * np.eye(len(times))
    factor = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(factor, departures.T)
    likelihood = -0.5 * float((solved**2).sum())
    likelihood -= len(departures) * float(np.log(np.diag(factor)).sum())
    return likelihood, kernel, spread * noise
