"""The charts as small drawings (SVG) for pages without scripts."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from distrain_nb.run.summary import brief
from distrain_nb.ui.figure import COLOURS, left_out, series_of, shown, tags_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from distrain_nb.run.metrics.events import Key
    from distrain_nb.ui.lines import ChartLine, Metrics

POINTS_IN_ALL = 3_000
WIDTH, HEIGHT = 360, 180
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 20
TICKS = 4


def charts(metrics: Metrics) -> str:
    """A figure for each metric, with a line for each series."""
    drawn = shown(metrics.keys)
    series = series_of(drawn)
    points = max(10, min(300, POINTS_IN_ALL // max(1, len(drawn))))
    last = metrics.last()
    figures = []
    for tag in tags_of(drawn):
        lines = {key: metrics.line(key, points) for key in drawn if key.tag == tag}
        newest = f" &nbsp;{brief(last[tag])}" if tag in last else ""
        title = f"{html.escape(tag)}{newest}"
        figures.append(
            f"<figure><figcaption>{title}</figcaption>{_svg(tag, lines, series)}</figure>"
        )
    legend = _legend(series) if len(series) > 1 else ""
    notes = "".join(
        f'<div class="dn-note">{html.escape(note)}</div>'
        for note in (left_out(metrics.keys), *metrics.notes)
        if note
    )
    return f'{legend}<div class="dn-charts">{"".join(figures)}</div>{notes}'


def _legend(series: Sequence[str]) -> str:
    names = "".join(
        f'<span style="color:{COLOURS[n % len(COLOURS)]}">● {html.escape(name or "run")}</span> '
        for n, name in enumerate(series)
    )
    return f'<div class="dn-bar">{names}</div>'


def _svg(tag: str, lines: dict[Key, ChartLine], series: Sequence[str]) -> str:
    x_range = _range([line.x for line in lines.values()])
    y_range = _range([line.y for line in lines.values()])
    drawn = "".join(
        _polyline(line, x_range, y_range, COLOURS[series.index(key.series) % len(COLOURS)])
        for key, line in lines.items()
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(tag)} by step">'
        f"{_grid(x_range, y_range)}{drawn}</svg>"
    )


def _range(arrays: Sequence[NDArray[Any]]) -> tuple[float, float]:
    values = np.concatenate([array.astype(np.float64) for array in arrays])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _polyline(
    line: ChartLine, x_range: tuple[float, float], y_range: tuple[float, float], colour: str
) -> str:
    x = _place(line.x, x_range, LEFT, WIDTH - RIGHT)
    y = _place(line.y, y_range, HEIGHT - BOTTOM, TOP)
    finite = np.isfinite(y)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[finite], y[finite], strict=True))
    if int(finite.sum()) == 1:
        a, _, b = points.partition(",")
        return f'<circle cx="{a}" cy="{b}" r="2.5" fill="{colour}"/>'
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"'
        ' stroke-linejoin="round"/>'
    )


def _place(
    values: NDArray[Any],
    within: tuple[float, float],
    start: float,
    end: float,
) -> NDArray[Any]:
    low, high = within
    return start + (values.astype(np.float64) - low) / (high - low) * (end - start)


def _grid(x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    parts = []
    for part in range(TICKS):
        share = part / (TICKS - 1)
        y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
        value = y_range[0] + share * (y_range[1] - y_range[0])
        parts.append(
            f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#808080" stroke-opacity=".25"/>'
            f'<text x="{LEFT - 5}" y="{y + 3:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    for share, anchor in ((0.0, "start"), (1.0, "end")):
        x = LEFT + share * (WIDTH - RIGHT - LEFT)
        value = x_range[0] + share * (x_range[1] - x_range[0])
        parts.append(f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="{anchor}">{value:,.6g}</text>')
    return "".join(parts)
