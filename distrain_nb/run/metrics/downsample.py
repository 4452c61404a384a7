"""Fewer points of a line, chosen so that its peaks stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from distrain_nb.run.metrics.records import Points

FEWEST = 3  # points that a line is thinned to
_SHARE_OF_GAPS = 4  # of the chosen points, at most a fourth only interrupt the line


class Thinned(NamedTuple):
    """Some of many points. From `low` to `high` are the finite values of all points from the one
    before to the one behind; NaN where there is none."""

    points: Points
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def downsample(points: Points, count: int) -> Points:
    """Return `count` of the points at most, in order of their steps, chosen so that peaks stay."""
    ordered = _ordered(points)
    return ordered[_chosen(ordered, count)] if len(points) > count else ordered


def thin(points: Points, count: int) -> Thinned:
    """Return the points as `downsample` does, with the range of those around them."""
    ordered = _ordered(points)
    if len(points) <= count:
        return Thinned(ordered, ordered["value"], ordered["value"])
    chosen = _chosen(ordered, count)
    values = np.where(np.isfinite(ordered["value"]), ordered["value"], np.nan)
    # Up to the next point each; a line's band is to have all of them, so the ones before count too.
    low, high = np.fmin.reduceat(values, chosen), np.fmax.reduceat(values, chosen)
    low[1:], high[1:] = np.fmin(low[1:], low[:-1]), np.fmax(high[1:], high[:-1])
    return Thinned(ordered[chosen], low, high)


def _ordered(points: Points) -> Points:
    """Return the points in order of their steps."""
    steps = points["step"]
    return points[np.argsort(steps, kind="stable")] if (np.diff(steps) < 0).any() else points


def _chosen(points: Points, count: int) -> NDArray[np.intp]:
    """Return the indexes of `count` points at most, in their order.

    Points that are not finite interrupt the line, however few they are: of those in a row, the
    first is among the chosen.
    """
    from tsdownsample import MinMaxLTTBDownsampler

    x = np.ascontiguousarray(points["step"])
    y = np.ascontiguousarray(points["value"], dtype=np.float32)
    finite = np.isfinite(y)
    if finite.all():
        return np.asarray(MinMaxLTTBDownsampler().downsample(x, y, n_out=count), np.intp)
    begins = np.flatnonzero(~finite & np.append(True, finite[:-1]))
    begins = begins[:: -(-len(begins) // max(1, count // _SHARE_OF_GAPS))][: count - FEWEST]
    others = np.delete(np.arange(len(y)), begins)
    x, y = x[others], np.where(finite, y, np.float32(0))[others]
    chosen = others[MinMaxLTTBDownsampler().downsample(x, y, n_out=count - len(begins))]
    return np.sort(np.append(chosen, begins))
