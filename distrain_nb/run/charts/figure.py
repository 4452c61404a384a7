"""The figure of some metrics: a chart for each metric, a line for each series.

Pages get the points as bytes, and the lines in the form of plotly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from colorsys import hls_to_rgb, rgb_to_hls
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.summary import short_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distrain_nb.run.charts.lines import ChartLine, Metrics
    from distrain_nb.run.metrics.events import Key

COLOURS = ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#ec4899", "#14b8a6", "#84cc16")
LINE_PX, DOT_PX = 2, 5
DOTS_UP_TO = 24
MOST_TAGS = 60
MOST_RANKS = 12  # whose step times are charts: a heat map has all
MANY = 8  # lines of one chart; more are a band, until the reader wants all
_GOLDEN = 0.618034  # of the wheel of colours, so that successive hues lie far apart
_SHADES = (0.0, 0.17, -0.15, 0.28, -0.24)  # how much lighter each next line of a run is
Family = Callable[[str], str]
_DIGITS = re.compile(r"([0-9]+)")
TOGETHER_UP_TO = 6  # more metrics are grouped by their prefixes
NAMED = 3  # series that a chart's note names
POINTS_A_LINE, POINTS_IN_ALL = 1_000, 200_000
FEWEST_POINTS = 50


def traces(
    keys: Sequence[Key], *, stacked: bool, family: Family | None = None
) -> list[dict[str, object]]:
    """Return the lines as plotly's traces without their points, with a subplot for each metric.

    If they are `stacked`, they are areas above each other.
    """
    tags = {tag: index for index, tag in enumerate(tags_of(keys))}
    colours = colours_of(keys, family)
    return [
        {
            "type": "scatter",
            "name": name_of(key.series),
            "xaxis": _axis("x", tags[key.tag]),
            "yaxis": _axis("y", tags[key.tag]),
            "line": {"color": colours[key.series], "width": LINE_PX},
            "marker": {"size": DOT_PX},
            **({"stackgroup": _axis("y", tags[key.tag])} if stacked else {}),
        }
        for key in keys
    ]


def _axis(letter: str, index: int) -> str:
    """Return the name of an axis in traces: `x`, `x2`, `x3`…"""
    return f"{letter}{index + 1}" if index else letter


def colours_of(keys: Sequence[Key], family: Family | None = None) -> dict[str, str]:
    """Return a colour for each series, in the order of a legend.

    With a `family`, such as several runs in their order, each member has a colour. Its series have
    shades of that.
    """
    names = series_of(keys)
    if family is None:
        return {name: _ink(index) for index, name in enumerate(names)}
    families: dict[str, list[str]] = {family(key.series): [] for key in keys}
    for name in names:
        families[family(name)].append(name)
    return {
        name: _shade(_ink(index), _SHADES[number % len(_SHADES)])
        for index, members in enumerate(families.values())
        for number, name in enumerate(members)
    }


def _ink(index: int) -> str:
    return COLOURS[index] if index < len(COLOURS) else _hue(index * _GOLDEN % 1)


def _shade(colour: str, lighter: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, light, saturation = rgb_to_hls(red, green, blue)
    return _hex(hls_to_rgb(hue, min(0.85, max(0.2, light + lighter)), saturation))


def _hex(parts: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _hue(share: float) -> str:
    """Return a colour of the wheel, by its share of the way around."""
    return _hex(hls_to_rgb(share, 0.5, 0.65))


def name_of(series: str) -> str:
    """Return the name of a series in a legend; `run` for the series of the run itself."""
    return series or "run"


def groups(tags: Sequence[str]) -> dict[str, list[str]]:
    """Return the metrics by the text before the first `/`. A few metrics form one group without
    a name."""
    by_prefix: dict[str, list[str]] = {}
    for tag in tags:
        prefix, slash, _ = tag.partition("/")
        by_prefix.setdefault(prefix if slash else "", []).append(tag)
    return by_prefix if len(tags) > TOGETHER_UP_TO and len(by_prefix) > 1 else {"": list(tags)}


def words(lines: Mapping[Key, ChartLine]) -> dict[str, str]:
    """Return a note, by tag, for metrics with values that are not finite."""
    notes = {}
    for tag in tags_of(tuple(lines)):
        curves = {key.series: line for key, line in lines.items() if key.tag == tag}
        by_text: dict[str, list[str]] = {}
        for series, line in curves.items():
            if text := _gaps(line):
                by_text.setdefault(text, []).append(series)
        if not any(np.isfinite(line.y).any() for line in curves.values()):
            notes[tag] = _no_value(list(curves.values()))
        elif len(curves) == 1:
            notes.update((tag, text) for text in by_text)
        elif by_text:
            notes[tag] = "; ".join(f"{text}: {_names(held)}" for text, held in by_text.items())
    return notes


def _gaps(line: ChartLine) -> str:
    if not np.isfinite(line.y).any():
        return "no finite values"
    return str(line.gaps or "")


def _names(series: Sequence[str]) -> str:
    named = ", ".join(map(name_of, series[:NAMED]))
    return f"{named} and {len(series) - NAMED:,} more" if len(series) > NAMED else named


def _no_value(lines: list[ChartLine]) -> str:
    count = sum(line.count for line in lines)
    kind = "NaN" if all(np.isnan(line.y).all() for line in lines) else "infinite or NaN"
    return f"the only value is {kind}" if count == 1 else f"all {count:,} values are {kind}"


def shown(keys: Sequence[Key], stacked: bool = False) -> tuple[Key, ...]:
    """Return the lines to draw: those of the first metrics, since no page holds thousands.

    If lines are `stacked`, each metric is the step times of a rank.
    """
    most = _most(stacked)
    if len(keys) <= most:
        return tuple(keys)
    tags = set(islice(dict.fromkeys(key.tag for key in keys), most))
    return tuple(key for key in keys if key.tag in tags)


def left_out(keys: Sequence[Key], stacked: bool = False) -> str:
    """Return a sentence about the metrics that are not drawn; empty if all are."""
    most = _most(stacked)
    count = len({key.tag for key in keys}) if len(keys) > most else 0
    if count <= most:
        return ""
    whose, where = ("ranks, late ones first", "step_times") if stacked else ("metrics", "metrics")
    return f"the first {most} of {count:,} {whose}; run.{where}() has all"


def _most(stacked: bool) -> int:
    return MOST_RANKS if stacked else MOST_TAGS


def tags_of(keys: Sequence[Key]) -> list[str]:
    """Return the metrics in order of first appearance."""
    return list(dict.fromkeys(key.tag for key in keys))


def series_of(keys: Sequence[Key]) -> list[str]:
    """Return the series by name, with numbers in numeric order: `rank-2` before `rank-10`."""
    return sorted(dict.fromkeys(key.series for key in keys), key=_by_number)


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in _DIGITS.split(name)]


def points_a_line(keys: Sequence[Key]) -> int:
    """Return how many points each of these lines keeps after thinning."""
    return max(FEWEST_POINTS, min(POINTS_A_LINE, POINTS_IN_ALL // max(1, len(keys))))


def chart_data(metrics: Metrics, lines: Mapping[Key, ChartLine]) -> dict[str, object]:
    """Return the data of the page's charts besides the sheet and the points.

    `newest` names every metric.
    """
    last = metrics.last()
    return {
        "keys": [list(key) for key in lines],
        "traces": traces(tuple(lines), stacked=metrics.stacked, family=metrics.family),
        "newest": {tag: short_number(last[tag]) if tag in last else "" for tag in metrics.tags},
        "dots": DOTS_UP_TO,
        "thinned": any(line.is_thinned for line in lines.values()),
    }


def packed_numbers(line: ChartLine) -> dict[str, object]:
    """Return numbers as bytes, little-endian: float64 for `wide` steps, otherwise float32.

    `low` and `high` are empty if no point is left out.
    """
    return {
        "step": line.x.tobytes(),
        "wide": line.x.itemsize == 8,
        "value": line.y.tobytes(),
        "seconds": line.seconds.tobytes(),
        "began": line.began,
        "low": line.low.tobytes() if line.is_thinned else b"",
        "high": line.high.tobytes() if line.is_thinned else b"",
    }
