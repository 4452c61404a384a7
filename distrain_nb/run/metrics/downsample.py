"""Fewer points that draw the same line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from distrain_nb.run.metrics.records import Points


def downsample(points: Points, count: int) -> Points:
    """Return `count` of the points at most, in order of their steps, chosen so that peaks stay."""
    steps = points["step"]
    if (np.diff(steps) < 0).any():
        points = points[np.argsort(steps, kind="stable")]
    return points[_chosen(points, count)] if len(points) > count else points


def _chosen(points: Points, count: int) -> NDArray[np.uint64]:
    from tsdownsample import MinMaxLTTBDownsampler

    x = np.ascontiguousarray(points["step"])
    y = np.ascontiguousarray(points["value"], dtype=np.float32)
    finite = np.isfinite(y)
    if not finite.all():
        y = np.where(finite, y, np.float32(0))
    chosen: NDArray[np.uint64] = MinMaxLTTBDownsampler().downsample(x, y, n_out=count)
    return chosen
