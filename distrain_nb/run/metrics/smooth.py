"""Smooth lines: moving averages over all points, however many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from distrain_nb.run.metrics.records import Points

_BLOCK = 256


def smooth(points: Points, weight: float) -> Points:
    """Return the points with exponential moving averages as values, `weight` that of what was
    before.

    The averages are not pulled towards zero at the start, as TensorBoard's are not. What is no
    finite number stays as it is and counts for nothing.
    """
    if not weight or not len(points):
        return points
    smoothed: Points = points.copy()
    finite = np.isfinite(points["value"])
    values = np.ascontiguousarray(points["value"][finite])
    smoothed["value"][finite] = _average(values, weight) / _shares(len(values), weight)
    return smoothed


def _average(values: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Return the averages as if zeros stood before: block by block, since each needs the one
    before."""
    count = -(-len(values) // _BLOCK)
    padded = np.zeros((count, _BLOCK))
    padded.reshape(-1)[: len(values)] = values
    powers = weight ** np.arange(_BLOCK)
    gaps = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
    within = padded @ np.where(gaps >= 0, (1 - weight) * weight ** np.maximum(gaps, 0.0), 0).T
    carried = np.zeros(count)
    for block in range(1, count):
        carried[block] = within[block - 1, -1] + weight**_BLOCK * carried[block - 1]
    averages: NDArray[np.float64] = within + carried[:, None] * (weight * powers)
    return averages.reshape(-1)[: len(values)]


def _shares(count: int, weight: float) -> NDArray[np.float64]:
    """Return the sums of the first 1, 2, … `count` weights of the average."""
    shares: NDArray[np.float64] = 1 - np.power(weight, np.arange(1.0, count + 1.0))
    return shares
