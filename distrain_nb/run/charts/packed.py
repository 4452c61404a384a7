"""Charts as a page takes them: points as bytes, and what plotly is told of the lines besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.charts import figure
from distrain_nb.run.summary import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distrain_nb.run.charts.lines import ChartLine, Metrics
    from distrain_nb.run.metrics.events import Key

POINTS_A_LINE, POINTS_IN_ALL = 1_000, 200_000
FEWEST_POINTS = 50


def points_a_line(keys: Sequence[Key]) -> int:
    """Return to how many points each of these lines is thinned."""
    return max(FEWEST_POINTS, min(POINTS_A_LINE, POINTS_IN_ALL // max(1, len(keys))))


def shape(metrics: Metrics, lines: Mapping[Key, ChartLine]) -> dict[str, object]:
    """Return what the page gets besides the sheet and the points; `newest` names every metric."""
    last = metrics.last()
    return {
        "keys": [list(key) for key in lines],
        "traces": figure.traces(tuple(lines), stacked=metrics.stacked),
        "newest": {tag: brief(last[tag]) if tag in last else "" for tag in metrics.tags},
        "dots": figure.DOTS_UP_TO,
        "thinned": any(len(line.x) < line.count for line in lines.values()),
    }


def packed(line: ChartLine) -> dict[str, object]:
    """Return numbers as bytes, little-endian; `wide` steps are float64, everything else float32."""
    return {
        "step": line.x.tobytes(),
        "wide": line.x.itemsize == 8,
        "value": line.y.tobytes(),
        "seconds": line.seconds.tobytes(),
        "began": line.began,
    }
