"""A plotly figure with a subplot for each metric and a line for each series."""

from __future__ import annotations

import html
from itertools import islice
from typing import TYPE_CHECKING, Any

from distrain_nb.run.summary import brief

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distrain_nb.run.metrics.events import Key
    from distrain_nb.ui.lines import ChartLine, Metrics

COLOURS = ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#ec4899", "#14b8a6", "#84cc16")
ROW_PX = 220
ONLY_ROW_PX = 260
TITLE_PX, LEGEND_PX = 34, 26
DOTS_UP_TO = 24
MOST_COLUMNS = 3
MOST_TAGS = 60
COLUMNS_OF_ANY_PAGE = 2
CONFIG = {"displaylogo": False, "responsive": True, "displayModeBar": "hover"}
_GAP_X, _GAP_PX = 0.07, 64
_GREY = "#808080"


def traces(keys: Sequence[Key]) -> list[dict[str, Any]]:
    """The lines but for their points, with a subplot for each metric."""
    tags = {tag: place for place, tag in enumerate(tags_of(keys))}
    first: dict[str, Key] = {}
    for key in keys:
        first.setdefault(key.series, key)
    numbers = {series: number for number, series in enumerate(first)}
    return [
        _trace(key, tags[key.tag], numbers[key.series], legend=first[key.series] == key)
        for key in keys
    ]


def _trace(key: Key, place: int, number: int, *, legend: bool) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": key.series or "run",
        "legendgroup": key.series,
        "showlegend": legend,
        "xaxis": _axis("x", place),
        "yaxis": _axis("y", place),
        "line": {"color": COLOURS[number % len(COLOURS)], "width": 2},
        "marker": {"size": 5},
    }


def points_of(line: ChartLine) -> dict[str, Any]:
    """The points of a trace."""
    return {
        "x": line.x,
        "y": line.y,
        "mode": "lines+markers" if len(line.x) <= DOTS_UP_TO else "lines",
    }


def layout(
    tags: Sequence[str],
    last: dict[str, float],
    several: bool,
    most_columns: int = COLUMNS_OF_ANY_PAGE,
) -> dict[str, Any]:
    """The subplots in a grid; `several` series ask for a legend."""
    columns = min(most_columns, len(tags), 2 if len(tags) <= 4 else MOST_COLUMNS)
    rows = -(-len(tags) // columns)
    height = ONLY_ROW_PX if rows == 1 else rows * ROW_PX
    top = TITLE_PX + LEGEND_PX if several else TITLE_PX
    shape: dict[str, Any] = {
        "template": {},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": _GREY, "size": 11},
        "margin": {"l": 48, "r": 16, "t": top, "b": 36},
        "height": height + top,
        "autosize": True,
        "hovermode": "x unified",
        "hoverlabel": {"font": {"size": 11}, "bgcolor": "#ffffff", "bordercolor": "#c0c8d0"},
        "showlegend": several,
        # Above the titles, with as many rows as the page makes of it: plotly makes room for them.
        "legend": {"orientation": "h", "x": 0, "y": 1 + TITLE_PX / height, "yanchor": "bottom"},
        "annotations": titles(tags, last),
    }
    for place in range(len(tags)):
        shape |= _axes(place, columns, rows, height)
    return shape


def title(tag: str, last: dict[str, float]) -> str:
    """What stands above a subplot: its metric and, where there is one, the newest value."""
    return f"<b>{html.escape(tag)}</b>  {brief(last[tag]) if tag in last else ''}".rstrip()


def titles(tags: Sequence[str], last: dict[str, float]) -> list[dict[str, Any]]:
    """Above each subplot its title."""
    return [
        {
            "text": title(tag, last),
            "xref": f"{_axis('x', place)} domain",
            "yref": f"{_axis('y', place)} domain",
            "x": 0,
            "y": 1,
            "yshift": 20,
            "xanchor": "left",
            "yanchor": "top",
            "showarrow": False,
            "font": {"size": 12},
        }
        for place, tag in enumerate(tags)
    ]


def _axis(letter: str, place: int) -> str:
    """As traces name it: `x`, `x2`, `x3`…"""
    return f"{letter}{place + 1}" if place else letter


def _axes(place: int, columns: int, rows: int, height: int) -> dict[str, Any]:
    row, column = divmod(place, columns)
    width = (1 - _GAP_X * (columns - 1)) / columns
    gap = _GAP_PX / height
    tall = (1 - gap * (rows - 1)) / rows
    left, bottom = column * (width + _GAP_X), 1 - row * (tall + gap) - tall
    common = {"gridcolor": "rgba(128,128,128,.25)", "zeroline": False, "automargin": False}
    common |= {"ticklabeloverflow": "allow"}  # to look for labels beyond the edge takes long
    x = {**common, "anchor": _axis("y", place), "showgrid": False, "nticks": 6}
    x |= {"domain": [left, min(1.0, left + width)], "showline": True, "linecolor": _GREY}
    y = {**common, "anchor": _axis("x", place), "nticks": 5}
    y |= {"domain": [max(0.0, bottom), min(1.0, bottom + tall)]}
    return {f"xaxis{place + 1}": x, f"yaxis{place + 1}": y}


def whole(metrics: Metrics, points: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(traces, layout) of everything that there is, at most `points` points a line."""
    keys = shown(metrics.keys)
    tags, series = tags_of(keys), series_of(keys)
    lines = [
        each | points_of(metrics.line(key, points))
        for key, each in zip(keys, traces(keys), strict=True)
    ]
    return lines, layout(tags, metrics.last(), len(series) > 1)


def shown(keys: Sequence[Key]) -> tuple[Key, ...]:
    """The lines that are drawn: those of the first metrics, since no page holds thousands."""
    if len(keys) <= MOST_TAGS:
        return tuple(keys)
    tags = set(islice(dict.fromkeys(key.tag for key in keys), MOST_TAGS))
    return tuple(key for key in keys if key.tag in tags)


def left_out(keys: Sequence[Key]) -> str:
    """A sentence about the metrics that are not drawn; empty where all are."""
    if len(keys) <= MOST_TAGS:
        return ""
    count = len({key.tag for key in keys})
    if count <= MOST_TAGS:
        return ""
    return f"the first {MOST_TAGS} of {count:,} metrics; run.metrics() has all"


def tags_of(keys: Sequence[Key]) -> list[str]:
    """The metrics in order of first appearance."""
    return list(dict.fromkeys(key.tag for key in keys))


def series_of(keys: Sequence[Key]) -> list[str]:
    """The series in order of first appearance."""
    return list(dict.fromkeys(key.series for key in keys))
