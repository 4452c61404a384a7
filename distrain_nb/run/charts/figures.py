"""The charts of runs as figures of plotly's Python package, with the page's lines and colours.

The package is the extra `plotly`, imported with the first figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError, OptionError, did_you_mean
from distrain_nb.run.charts import figure
from distrain_nb.run.charts.lines import ChartLine, Metrics
from distrain_nb.run.metrics.events import Key
from distrain_nb.run.metrics.non_scalars import NonScalars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import plotly.graph_objects as go

HEIGHT_PX = 320  # of each chart


class OverlaidMetrics(Metrics):
    """The metrics of several runs as those of one, with the run as the series."""

    in_bands = False  # the reader has chosen each run

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._runs = {title: Metrics(folder) for title, folder in folders.items()}
        self.command = f"%distrain compare {' '.join(folder.name for folder in folders.values())}"
        self._places: dict[Key, tuple[Metrics, Key]] = {}

    def read(self) -> tuple[Key, ...]:
        stale = tuple(
            Key(line_name(name, key.series), key.tag)
            for name, metrics in self._runs.items()
            for key in metrics.read()
        )
        self._places = {
            Key(line_name(name, key.series), key.tag): (metrics, key)
            for name, metrics in self._runs.items()
            for key in metrics.keys
        }
        return stale

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.tag for key in self._places))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self._places)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for metrics in self._runs.values() for note in metrics.notes)

    @property
    def non_scalars(self) -> NonScalars:
        """Nothing: only scalars are laid over each other."""
        return NonScalars()

    def line(self, key: Key, points: int = 1_000) -> ChartLine:
        metrics, key_there = self._places[key]
        return metrics.line(key_there, points)

    def last(self) -> dict[str, float]:
        """Return no newest values: what is newest in one run is not what is newest in all."""
        return {}


def line_name(title: str, series: str) -> str:
    """Return the name of a series of one of several runs: `night #3/rank-0`."""
    return "/".join(filter(None, (title, series)))


def require_plotly(what: str) -> None:
    """Raise DistrainError where plotly is missing."""
    try:
        import plotly.graph_objects  # noqa: F401 - as the figures will
    except ImportError:
        raise DistrainError(
            f"{what} needs plotly: %pip install 'distrain-nb[plotly]', or plotly alone"
        ) from None


def figure_of(metrics: Metrics, tags: tuple[str, ...], what: str) -> go.Figure:
    """Return the charts of these metrics, or of all that the page draws, below each other.

    Raises OptionError for a metric that there isn't, DistrainError where plotly is missing.
    """
    require_plotly(f"{what}.figure()")
    from plotly.subplots import make_subplots

    metrics.read()
    drawn = figure.shown(metrics.keys)
    for tag in tags:
        if tag not in metrics.tags:
            hint = did_you_mean(tag, metrics.tags, ".")
            known = ", ".join(metrics.tags[:20]) or "none yet"
            raise OptionError(f"{what} has no metric {tag!r}{hint} There are: {known}")
    keys = tuple(key for tag in tags for key in metrics.keys if key.tag == tag) or drawn
    if not keys:
        raise OptionError(f"{what} has no metrics yet")
    colours = {**figure.colours_of(metrics.keys), **figure.colours_of(drawn)}
    names = figure.tags_of(keys)
    charts: go.Figure = make_subplots(rows=len(names), subplot_titles=names)
    named: set[str] = set()
    for key, trace in zip(keys, figure.traces(keys, stacked=metrics.stacked), strict=True):
        line = metrics.line(key, figure.points_a_line(drawn))
        dots = "+markers" if len(line.x) <= figure.DOTS_UP_TO else ""
        charts.add_trace(
            {
                **trace,
                "x": line.x,
                "y": line.y,
                "mode": f"lines{dots}",
                "line": {"color": colours[key.series], "width": figure.LINE_PX},
                "legendgroup": key.series,
                "showlegend": key.series not in named,
            }
        )
        named.add(key.series)
    charts.update_xaxes(title_text="step", row=len(names))
    return charts.update_layout(height=HEIGHT_PX * len(names), template="plotly_white")
