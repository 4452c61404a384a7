"""Values of a line that are no finite numbers, as of a training that has diverged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import Points


@dataclass(frozen=True)
class Gaps:
    """Points whose values are not finite: their number, and the least of their steps.

    `kind` is "NaN", "infinite" or "infinite or NaN". `all_later` says whether no later point is
    finite.
    """

    count: int
    first: int
    kind: str
    all_later: bool

    def __str__(self) -> str:
        if self.all_later:
            return f"{self.kind} from step {self.first:,} on"
        if self.count == 1:
            return f"{self.kind} at step {self.first:,}"
        return f"{self.kind} at {self.count:,} steps, first at step {self.first:,}"


def gaps(points: Points) -> Gaps | None:
    """Return the gaps of a line; None if all its values are finite."""
    values = points["value"]
    finite = np.isfinite(values)
    if finite.all():
        return None
    first = points["step"][~finite].min()
    nans = np.isnan(values[~finite])
    kind = "NaN" if nans.all() else "infinite or NaN" if nans.any() else "infinite"
    return Gaps(len(nans), int(first), kind, not finite[points["step"] >= first].any())
