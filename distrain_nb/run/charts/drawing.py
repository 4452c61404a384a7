"""The charts as a document has them, without scripts: HTML around drawings (SVG) of the lines.

A page's live charts stand in the same HTML (`page/src/charts/sheet.js`) and put plotly's lines
where the drawings are: titles, legend, places, sizes and ticks are the same by that.
All sizes are those of `page/styles/charts.css`.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from distrain_nb.run.charts import figure
from distrain_nb.run.charts.heat_map import heat_map
from distrain_nb.run.charts.lines import ChartLine
from distrain_nb.run.charts.ticks import X_AXIS, Y_AXIS, padded, ticks
from distrain_nb.run.metrics.events import Key
from distrain_nb.run.summary import short_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from distrain_nb.run.charts.lines import Metrics, Numbers

    Lines = Mapping[Key, ChartLine]

    Range = tuple[float, float]

Number = TypeVar("Number", float, "NDArray[np.float64]")

POINTS_IN_ALL = 3_000
MOST_ABOVE_NOTES = 12  # charts: below more, nobody would see them
SIDE = 1_000  # of a drawing, stretched to its place
USUAL_WIDTH_PX = 400
LEFT_AT_LEAST_PX, CHARACTER_PX, BESIDE_PX = 44, 6.6, 12


def charts(metrics: Metrics) -> str:
    """Return everything that there is, drawn with some hundred points a line."""
    keys = figure.shown(metrics.keys, metrics.stacked)
    points = max(10, min(300, POINTS_IN_ALL // max(1, len(keys))))
    return sheet(metrics, {key: metrics.line(key, points) for key in keys}, drawn=True)


def sheet(metrics: Metrics, lines: Lines, *, drawn: bool) -> str:
    """Return the HTML around the charts of these lines; if `drawn`, with the lines and the newest
    values."""
    tags, colours = figure.tags_of(tuple(lines)), figure.colours_of(tuple(lines), metrics.family)
    last = metrics.last() if drawn else {}
    notes = figure.words(lines)
    curves: dict[str, Lines] = {
        tag: {key: line for key, line in lines.items() if key.tag == tag} for tag in tags
    }
    if metrics.stacked:
        curves = {tag: _sums(held) for tag, held in curves.items()}
    charts = {
        tag: chart(
            tag,
            short_number(last[tag]) if tag in last else "",
            notes.get(tag, ""),
            _svg(tag, curves[tag], colours, _height(tags), metrics) if drawn else "",
        )
        for tag in tags
    }
    grouped = figure.groups(tags)
    body = "".join(group(name, [charts[tag] for tag in held]) for name, held in grouped.items())
    height = _height(tags)
    y_ranges = [_y_range(curve, height) for curve in curves.values()]
    margin = left_room(text for y_range in y_ranges for _, text in ticks(Y_AXIS, *y_range))
    style = f"--dn-left:{margin:.0f}px;--dn-plot:{height}px"
    sentences = _notes((*metrics.notes, figure.left_out(metrics.keys, metrics.stacked)))
    slow = heat_map(metrics.slow, colours) if metrics.slow else ""
    is_long = bool(slow) or len(tags) > MOST_ABOVE_NOTES
    above, below = (sentences, "") if is_long else ("", sentences)
    legend = _legend(colours, metrics.in_bands)
    return f'<div class="dn-sheet" style="{style}">{above}{legend}{slow}{body}{below}</div>'


def _height(tags: Sequence[str]) -> int:
    """Return the height of a chart's lines, in pixels."""
    return 240 if len(tags) <= 2 else 170


def _legend(colours: Mapping[str, str], in_bands: bool) -> str:
    if len(colours) < 2:
        return ""
    names = "".join(
        f'<span class="dn-series" data-series="{html.escape(series)}" style="--dn-ink:{colour}">'
        f"{html.escape(figure.name_of(series))}</span>"
        for series, colour in colours.items()
    )
    if len(colours) <= figure.MANY or not in_bands:
        return f'<div class="dn-legend">{names}</div>'
    entries = (("#808080", "mean"), ("#80808059", f"min to max of {len(colours)}"))
    first = next((colour, figure.name_of(series)) for series, colour in colours.items())
    words = "".join(
        f'<span class="dn-series" style="--dn-ink:{colour}">{html.escape(text)}</span>'
        for colour, text in (*entries, first)
    )
    return (
        f'<div class="dn-legend dn-kept">{words}</div>'
        f'<details class="dn-many"><summary>All {len(colours)} lines</summary>'
        f'<div class="dn-legend">{names}</div></details>'
    )


def _notes(notes: Iterable[str]) -> str:
    return "".join(
        f'<div class="dn-chart-note">{html.escape(note)}</div>' for note in notes if note
    )


def group(name: str, charts: Sequence[str]) -> str:
    """Return charts side by side; those of a name can be folded."""
    most = 1 if len(charts) == 1 else 2 if len(charts) <= 4 else 3
    grid = f'<div class="dn-grid" data-most="{most}">{"".join(charts)}</div>'
    if not name:
        return f'<div class="dn-group">{grid}</div>'
    name = html.escape(name)
    return (
        f'<details class="dn-group" open data-group="{name}"><summary>{name} '
        f'<span class="dn-soft">{len(charts)}</span></summary>{grid}</details>'
    )


def chart(tag: str, newest: str, note: str, drawn: str) -> str:
    """Draw one chart: its title with the newest value, a note in its place, its drawing."""
    tag = html.escape(tag)
    return (
        f'<div class="dn-chart" data-tag="{tag}"><div class="dn-title" title="{tag}"><b>{tag}</b> '
        f'<span class="dn-newest">{newest}</span></div><div class="dn-area">{drawn}</div>'
        f'<div class="dn-words">{html.escape(note)}</div></div>'
    )


def left_room(texts: Iterable[str]) -> float:
    """Return the room that these take beside a chart, in pixels."""
    return max(LEFT_AT_LEAST_PX, max(map(len, texts), default=0) * CHARACTER_PX + BESIDE_PX)


@dataclass(frozen=True)
class Plot:
    """Lines as SVG paths in a square of SIDE, and ticks by their shares from top and left."""

    paths: str
    rows: list[tuple[float, str]]
    columns: list[tuple[float, str]]


def plot(
    lines: Lines,
    colours: Mapping[str, str],
    height: float,
    *,
    stacked: bool = False,
    in_bands: bool = False,
) -> Plot:
    """Draw a chart. `height`, in pixels, is how high it will be shown; `stacked` lines are sums,
    the highest first, with all below them filled; `in_bands` draws many as a band and the first."""
    x_range, y_range = _x_range(lines), _y_range(lines, height, stacked)
    draw = _area if stacked else _line
    has_band = in_bands and not stacked and len(lines) > figure.MANY
    drawn = _band(lines, x_range, y_range) if has_band else ""
    if not stacked and len(lines) <= figure.MANY:
        drawn += "".join(
            _spread(line, x_range, y_range, colours[key.series]) for key, line in lines.items()
        )
    order = list(colours)
    first = min(lines, key=lambda key: order.index(key.series), default=None)
    drawn += "".join(
        draw(line, x_range, y_range, colours[key.series])
        for key, line in lines.items()
        if not has_band or key == first
    )
    rows = [(1 - _share(value, y_range), text) for value, text in ticks(Y_AXIS, *y_range)]
    columns = [(_share(value, x_range), text) for value, text in ticks(X_AXIS, *x_range)]
    return Plot(ground(rows) + drawn, rows, columns)


def ground(rows: Iterable[tuple[float, str]]) -> str:
    """Return the SVG ground of a chart: a rule for each row, and one below all."""
    grid = "".join(f"M0 {share * SIDE:.1f}H{SIDE}" for share, _ in rows)
    return f'<path class="dn-rows" d="{grid}"/><path class="dn-ground" d="M0 {SIDE}H{SIDE}"/>'


def _svg(
    tag: str, lines: Lines, colours: Mapping[str, str], height: float, metrics: Metrics
) -> str:
    if all(not np.isfinite(line.y).any() for line in lines.values()):
        return ""
    drawn = plot(lines, colours, height, stacked=metrics.stacked, in_bands=metrics.in_bands)
    return plot_with_ticks(drawn, f"{tag} by step")


def plot_with_ticks(drawn: Plot, label: str) -> str:
    """Return a plot with its ticks."""
    beside = "".join(
        f'<span class="dn-tick dn-y" style="top:{share:.2%}">{text}</span>'
        for share, text in drawn.rows
    )
    below = "".join(
        f'<span class="dn-tick dn-x" style="left:{share:.2%}">{text}</span>'
        for share, text in drawn.columns
    )
    return (
        f'<svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" role="img"'
        f' aria-label="{html.escape(label)}">{drawn.paths}</svg>{beside}{below}'
    )


def _share(value: Number, within: Range) -> Number:
    """Return where a value, or each of an array, is between the ends of a range: from 0 to 1."""
    return (value - within[0]) / (within[1] - within[0])


def _x_range(lines: Lines) -> Range:
    """Return the range of x: as wide as the lines, with room for dots."""
    low, high = _extent(line.x for line in lines.values())
    dots = any(len(line.x) <= figure.DOTS_UP_TO for line in lines.values())
    return padded(low, high, USUAL_WIDTH_PX, True) if dots or low == high else (low, high)


def _y_range(lines: Lines, height: float, stacked: bool = False) -> Range:
    if stacked:
        return 0.0, _extent(line.y for line in lines.values())[1] * 1.05 or 1.0
    low, high = _extent(edge for line in lines.values() for edge in (line.low, line.high))
    dots = any(len(line.x) <= figure.DOTS_UP_TO for line in lines.values())
    return padded(low, high, height, dots)


def _extent(arrays: Iterable[Numbers]) -> Range:
    values = np.concatenate([array.astype(np.float64) for array in arrays])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _band(lines: Lines, x_range: Range, y_range: Range) -> str:
    """Return the area from the least to the greatest of many lines, and their mean."""
    longest = max(lines.values(), key=lambda line: len(line.x))
    values = _along(lines, longest.x, "y")
    there = np.isfinite(values).any(axis=0)
    steps, mean = longest.x[there], np.nanmean(values[:, there], axis=0)
    low = np.fmin.reduce(_along(lines, steps, "low"))
    high = np.fmax.reduce(_along(lines, steps, "high"))
    path = _ring(steps, low, high, x_range, y_range)
    middle = replace(longest, x=steps, y=mean.astype(np.float32))
    return f'<path class="dn-band" d="{path}"/>{_line(middle, x_range, y_range, "#808080")}'


def _along(lines: Lines, steps: Numbers, name: str) -> NDArray[np.float64]:
    """Return an attribute of each line at these steps; NaN where it has no finite value."""
    values = [
        np.interp(steps, line.x, getattr(line, name), np.nan, np.nan) for line in lines.values()
    ]
    return np.where(np.isfinite(values), values, np.nan)


def _spread(line: ChartLine, x_range: Range, y_range: Range, colour: str) -> str:
    """Return the area from the least to the greatest of all points, where some are left out."""
    if not line.is_thinned:
        return ""
    there = np.isfinite(line.low)
    if not there.any():
        return ""
    path = _ring(line.x[there], line.low[there], line.high[there], x_range, y_range)
    return f'<path class="dn-spread" d="{path}" fill="{colour}"/>'


def _ring(x: Numbers, low: Numbers, high: Numbers, x_range: Range, y_range: Range) -> str:
    """Return the outline of an area between two lines, as a path: from point to point, which is
    half as long as by places."""
    across = _share(np.concatenate([x, x[::-1]]).astype(np.float64), x_range) * SIDE
    down = SIDE - _share(np.concatenate([low, high[::-1]]).astype(np.float64), y_range) * SIDE
    places = np.rint(np.stack([across, down], axis=1)).astype(np.int64)
    first, moves = places[0].tolist(), np.diff(places, axis=0).tolist()
    return f"M{first[0]} {first[1]}l{' '.join(f'{a} {b}' for a, b in moves)}Z"


def _sums(lines: Lines) -> Lines:
    """Return each line as the sum of those up to it, the highest first, above a line of zeros."""
    steps = np.unique(np.concatenate([line.x for line in lines.values()]))
    total, sums = np.zeros(len(steps)), dict[Key, ChartLine]()
    for key, line in lines.items():
        total = total + np.interp(steps, line.x, line.y)
        sums[key] = replace(line, x=steps, y=total.astype(np.float32))
    return dict(reversed(sums.items()))


def _area(line: ChartLine, x_range: Range, y_range: Range, colour: str) -> str:
    """Return the area from a line to the ground."""
    x = (_share(line.x.astype(np.float64), x_range) * SIDE).tolist()
    y = (SIDE - _share(line.y.astype(np.float64), y_range) * SIDE).tolist()
    ground = SIDE - _share(0.0, y_range) * SIDE
    points = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<path d="M{x[0]:.1f} {ground:.1f}L{points}V{ground:.1f}Z" fill="{colour}"/>'


def _line(line: ChartLine, x_range: Range, y_range: Range, colour: str) -> str:
    """Return the line, interrupted where a value is not finite; of few points each has a dot."""
    x = _share(line.x.astype(np.float64), x_range) * SIDE
    y = SIDE - _share(line.y.astype(np.float64), y_range) * SIDE
    finite = np.isfinite(y).tolist()
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    goes_on = [False, *finite[:-1]]
    path = "".join(
        f"{'L' if after else 'M'}{point}"
        for point, shown, after in zip(points, finite, goes_on, strict=True)
        if shown
    )
    drawn = f'<path class="dn-line" d="{path}" stroke="{colour}"/>'
    if len(points) > figure.DOTS_UP_TO:
        return drawn
    # Lines of no length have nothing but their round ends.
    dots = "".join(f"M{point}h0" for point, shown in zip(points, finite, strict=True) if shown)
    return f'{drawn}<path class="dn-dots" d="{dots}" stroke="{colour}"/>'
