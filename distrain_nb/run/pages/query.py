"""The queries of a page, as values. Whatever is wrong with one raises OptionError.

Scalars as JSON values: what a page draws lines of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.run.log.index import Filter
from distrain_nb.run.metrics.finite import all_or_none
from distrain_nb.run.metrics.smooth import smooth, thin

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import Points
    from distrain_nb.run.pages.protocol import CurveAnswer, CurvesAnswer
    from distrain_nb.run.streams import Scalars
    from distrain_nb.worker.files.status import Process

Query = Mapping[str, str]
STREAMS = ("o", "e")
FLAGS = {"": False, "0": False, "1": True}


def log_filter(query: Query, processes: Collection[Process]) -> Filter:
    """Read `process=0,2`, `role=workers`, `stream=e`: lines have to pass all of them."""
    chosen = _numbers(query["process"]) if query.get("process") else None
    if query.get("role"):
        of_roles = _of_roles(query["role"], processes)
        chosen = of_roles if chosen is None else chosen & of_roles
    stream = query.get("stream", "")
    if stream and stream not in STREAMS:
        raise OptionError(f"invalid stream {stream!r}: expected one of {', '.join(STREAMS)}")
    return Filter(chosen, stream)


def number(
    query: Query, name: str, default: int, low: int | None = None, high: int = (1 << 63) - 1
) -> int:
    """Return a whole number of the query, between `low` and `high`."""
    text = query.get(name) or str(default)
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"invalid {name} {text!r}: expected a whole number") from None
    if value > high or (low is not None and value < low):
        span = f"{low} to {high}" if low is not None else f"at most {high}"
        raise OptionError(f"invalid {name} {value}: expected a whole number, {span}")
    return value


def share(query: Query, name: str) -> float:
    """Return a number of the query from 0 to less than 1; 0 where it is not there."""
    text = query.get(name) or "0"
    try:
        value = float(text)
    except ValueError:
        raise OptionError(f"invalid {name} {text!r}: expected a number") from None
    if not 0 <= value < 1:
        raise OptionError(f"invalid {name} {text}: expected a number from 0 to less than 1")
    return value


def flag(query: Query, name: str) -> bool:
    text = query.get(name, "")
    if text not in FLAGS:
        raise OptionError(f"invalid {name} {text!r}: expected 1 or 0")
    return FLAGS[text]


def _numbers(text: str) -> frozenset[int]:
    parts = text.split(",")
    error = next((part for part in parts if not (part.isascii() and part.isdigit())), None)
    if error is not None:
        raise OptionError(f"invalid process {error!r}: expected numbers of processes, as in 0,2")
    return frozenset(map(int, parts))


def _of_roles(text: str, processes: Collection[Process]) -> frozenset[int]:
    roles = text.split(",")
    all_roles = dict.fromkeys(process.role for process in processes)
    error = next((role for role in roles if role not in all_roles), None)
    if error is not None:
        raise OptionError(f"invalid role {error!r}: there are {', '.join(all_roles) or 'none yet'}")
    return frozenset(process.index for process in processes if process.role in roles)


POINTS = 1_000
POINTS_AT_LEAST, POINTS_AT_MOST = 3, 100_000
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def curves(scalars: Scalars, query: Query) -> CurvesAnswer:
    """Return every line, or those of one `tag`; thinned to `points`, of the steps `from` .. `to`.

    With `smoothing` the values are averages over all points before, by that weight.
    """
    weight = share(query, "smoothing")
    count = number(query, "points", POINTS, POINTS_AT_LEAST, POINTS_AT_MOST)
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
