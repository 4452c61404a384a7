"""The heat map of slow ranks, as SVG that a page and a document have alike: ranks by steps.

A cell has the colour of what takes longer there, stronger by its share of a step; where nothing
does, the ground is seen. Above the ranks is a row of all: where a step takes longer than usual.
What a page says of a cell stands beside the drawing (`page/src/charts/heat.js`).
"""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.charts.ticks import X_AXIS, ticks
from distrain_nb.run.metrics.slow_ranks import ALL, SlowCell
from distrain_nb.run.metrics.step_findings import NAMES

if TYPE_CHECKING:
    from distrain_nb.run.metrics.slow_ranks import SlowRanks

HEIGHT_PX, LEAST_PX, MOST_PX = 240, 4, 14  # of all ranks; of a row
ALL_PX, GAP_PX = 12, 8
_LEVELS = ((0.8, "ff"), (0.4, "c8"), (0.2, "96"), (0.0, "64"))  # by share of a step: how opaque
_LABELS = 8
_NAMED = 3
_GREY = "#808080"


def heat_map(slow: SlowRanks, colours: Mapping[str, str]) -> str:
    """Return the map with its title, ticks and a sentence; `colours` are those of kinds."""
    row_px = max(LEAST_PX, min(MOST_PX, HEIGHT_PX // len(slow.rows)))
    columns, height = len(slow.edges) - 1, ALL_PX + GAP_PX + row_px * len(slow.rows)
    summary = _summary(slow)
    return (
        f'<div class="dn-heat" data-heat="{html.escape(_cell_texts(slow, row_px))}">'
        '<div class="dn-title"><b>Slow ranks</b> <span class="dn-soft">in the colour of what takes '
        "them longer than the others; stronger: more of a step</span></div>"
        f'<div class="dn-map" style="--dn-high:{height}px">'
        f'<svg viewBox="0 0 {columns} {height}" preserveAspectRatio="none" role="img"'
        f' aria-label="{html.escape(summary)}">'
        f'<path class="dn-cold" d="M0 0h{columns}v{ALL_PX}h-{columns}ZM0 {ALL_PX + GAP_PX}'
        f'h{columns}V{height}h-{columns}Z"/>{_paths(slow.cells, row_px, colours)}</svg>'
        f"{_beside(slow.rows, row_px, height)}{_below(slow)}</div>"
        f'<div class="dn-told">{html.escape(summary)}</div></div>'
    )


def _paths(cells: Iterable[SlowCell], row_px: int, colours: Mapping[str, str]) -> str:
    """Return a path for each colour: what is side by side in it is one rectangle."""
    by_colour: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for cell in cells:
        level = next(level for least, level in _LEVELS if cell.share >= least)
        by_colour[colours.get(cell.kind, _GREY) + level].append((cell.row, cell.column))
    return "".join(
        f'<path d="{"".join(_rectangles(places, row_px))}" fill="{colour}"/>'
        for colour, places in by_colour.items()
    )


def _rectangles(places: Iterable[tuple[int, int]], row_px: int) -> Iterator[str]:
    numbered = enumerate(sorted(places))
    for _, together in groupby(numbered, lambda item: (item[1][0], item[1][1] - item[0])):
        run = [place for _, place in together]
        (row, column), width = run[0], len(run)
        top, high = (0, ALL_PX) if row == ALL else (ALL_PX + GAP_PX + row * row_px, row_px)
        yield f"M{column} {top}h{width}v{high}h-{width}Z"


def _beside(rows: Sequence[Sequence[int]], row_px: int, height: int) -> str:
    """Return the names of some rows."""
    every = next(step for step in (1, 2, 4, 8, 16) if len(rows) <= _LABELS * step)
    places = [(ALL_PX / 2, "all")]
    places += [
        (ALL_PX + GAP_PX + (number + 0.5) * row_px, str(rows[number][0]))
        for number in range(0, len(rows), every)
    ]
    return "".join(
        f'<span class="dn-tick dn-y" style="top:{top / height:.2%}">{text}</span>'
        for top, text in places
    )


def _below(slow: SlowRanks) -> str:
    low, high = float(slow.edges[0]), float(slow.edges[-1])
    return "".join(
        f'<span class="dn-tick dn-x" style="left:{(step - low) / (high - low):.2%}">{text}</span>'
        for step, text in ticks(X_AXIS, low, high)
    )


def _summary(slow: SlowRanks) -> str:
    """Name the ranks that lose most time."""
    lost: dict[int, list[SlowCell]] = defaultdict(list)
    for cell in slow.cells:
        if cell.row != ALL:
            lost[cell.rank].append(cell)
    if not lost:
        return "No rank takes longer than the others."

    def total(rank: int) -> float:
        return sum(cell.seconds for cell in lost[rank])

    ordered = sorted(lost, key=total, reverse=True)
    columns = len(slow.edges) - 1
    named = [f"rank {rank}, by {_about(lost[rank], columns)}" for rank in ordered[:_NAMED]]
    more = len(ordered) - len(named)
    return f"Slowest: {'; '.join(named)}{f'; {more:,} more at times' if more else ''}."


def _about(cells: Sequence[SlowCell], columns: int) -> str:
    """Say how much longer a rank takes, when, and by what most of all."""
    by_kind: dict[str, float] = defaultdict(float)
    for cell in cells:
        by_kind[cell.kind] += cell.seconds
    kind = max(by_kind, key=lambda kind: by_kind[kind])
    mean = 1000 * sum(by_kind.values()) / len(cells)
    share = f" in {len(cells) / columns:.0%}".replace("%", " % of the steps")
    when = share if len(cells) < columns else ""
    return f"{mean:.3g} ms a step{when} ({NAMES.get(kind, kind)})"


def _cell_texts(slow: SlowRanks, row_px: int) -> str:
    """Return what a page says of cells, as JSON."""
    kinds = list(dict.fromkeys(cell.kind for cell in slow.cells))
    return json.dumps(
        {
            "first": ALL_PX + GAP_PX,
            "high": [ALL_PX, row_px],
            "ranks": [[row[0], row[-1]] for row in slow.rows],
            "edges": [round(edge) for edge in slow.edges.tolist()],
            "ended": [round(at) for at in slow.ended.tolist()],
            "step": [round(1000 * seconds, 2) for seconds in np.nan_to_num(slow.step_s).tolist()],
            "kinds": [NAMES.get(kind, kind) for kind in kinds],
            "cells": [
                [c.row, c.column, c.rank, kinds.index(c.kind), round(1000 * c.seconds, 1)]
                for c in slow.cells
            ],
        },
        separators=(",", ":"),
    )
