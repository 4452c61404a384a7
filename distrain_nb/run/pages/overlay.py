"""The metrics of several runs in one set of charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.charts.lines import Metrics, OverlaidMetrics
from distrain_nb.run.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable


def title(run: Run) -> str:
    """Return name and number of a run, to tell it from others."""
    return f"{run.name} #{run.id}"


def overlaid(runs: Iterable[Run]) -> OverlaidMetrics:
    """Return the metrics of several runs in one set of charts."""
    return OverlaidMetrics({title(run): Metrics(run.folder) for run in runs})
