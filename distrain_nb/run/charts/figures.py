"""The charts of runs as figures of plotly's Python package, with the page's lines and colours.

The package is the extra `plotly`, imported with the first figure.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError, OptionError, did_you_mean
from distrain_nb.run.charts import figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from distrain_nb.run.charts.lines import ChartLine, Metrics

HEIGHT_PX = 320  # of each chart


def require_plotly(caller: str) -> None:
    """Raise DistrainError where plotly is missing."""
    try:
        import plotly.graph_objects  # noqa: F401 - as the figures will
    except ImportError:
        raise DistrainError(
            f"{caller} needs plotly: %pip install 'distrain-nb[plotly]', or plotly alone"
        ) from None


def figure_of(metrics: Metrics, tags: tuple[str, ...], caller: str) -> go.Figure:
    """Return the charts of these metrics, or of all that the page draws, below each other.

    Raises OptionError for a metric that there isn't, DistrainError where plotly is missing.
    """
    require_plotly(f"{caller}.figure()")
    from plotly.subplots import make_subplots

    metrics.read()
    drawn = figure.shown(metrics.keys, metrics.stacked)
    for tag in tags:
        if tag not in metrics.tags:
            hint = did_you_mean(tag, metrics.tags, ".")
            listed = ", ".join(metrics.tags[:20]) or "none yet"
            raise OptionError(f"{caller} has no metric {tag!r}{hint} There are: {listed}")
    keys = tuple(key for tag in tags for key in metrics.keys if key.tag == tag) or drawn
    if not keys:
        raise OptionError(f"{caller} has no metrics yet")
    family = metrics.family
    colours = {**figure.colours_of(metrics.keys, family), **figure.colours_of(drawn, family)}
    names = figure.tags_of(keys)
    charts: go.Figure = make_subplots(rows=len(names), subplot_titles=names)
    named: set[str] = set()
    counts = Counter(key.tag for key in keys)
    for key, trace in zip(keys, figure.traces(keys, stacked=metrics.stacked), strict=True):
        line = metrics.line(key, figure.points_a_line(drawn))
        if line.is_thinned and counts[key.tag] <= figure.MANY and not metrics.stacked:
            charts.add_traces(_band(trace, line, key.series, colours[key.series]))
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


def _band(
    trace: Mapping[str, object], line: ChartLine, series: str, colour: str
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the edges of the area that has the points which are left out."""
    edge = {
        **trace,
        "x": line.x,
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": series,
    }
    filled = {"y": line.high, "fill": "tonexty", "fillcolor": f"{colour}33"}
    return {**edge, "y": line.low}, {**edge, **filled}
