"""The scalars of a run as JSON values: what a page draws lines of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.run.metrics.downsample import FEWEST, thin
from distrain_nb.run.metrics.finite import all_or_none
from distrain_nb.run.metrics.smooth import smooth
from distrain_nb.run.pages.query import Query, number, share

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import Points
    from distrain_nb.run.pages.protocol import CurveAnswer, CurvesAnswer
    from distrain_nb.run.streams import Scalars


POINTS = 1_000
POINTS_AT_MOST = 100_000
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def curves(scalars: Scalars, query: Query) -> CurvesAnswer:
    """Return every line, or those of one `tag`; thinned to `points`, of the steps `from` .. `to`.

    With `smoothing` the values are averages over all points before, by that weight.
    """
    weight = share(query, "smoothing")
    count = number(query, "points", POINTS, FEWEST, POINTS_AT_MOST)
    first, last = number(query, "from", _LOWEST), number(query, "to", _HIGHEST)
    tag = query.get("tag", "")
    with scalars.read() as events:
        chosen = [(key, events.points(key)) for key in events.keys if tag in ("", key[1])]
        notes = list(events.notes)
        lines = [
            _curve(run, name, _between(smooth(points, weight), first, last), count)
            for (run, name), points in chosen
        ]
    return {"lines": lines, "notes": notes}


def _between(points: Points, first: int, last: int) -> Points:
    if first == _LOWEST and last == _HIGHEST:
        return points
    steps = points["step"]
    return points[(steps >= first) & (steps <= last)]


def _curve(run: str, tag: str, line: Points, count: int) -> CurveAnswer:
    points, low, high = thin(line, count)
    is_thinned = len(points) < len(line)
    return {
        "run": run,
        "tag": tag,
        "step": points["step"].tolist(),
        "wall_time": all_or_none(points["wall_time"].tolist()),
        "value": all_or_none(points["value"].tolist()),
        "low": all_or_none(low.tolist()) if is_thinned else None,
        "high": all_or_none(high.tolist()) if is_thinned else None,
    }
