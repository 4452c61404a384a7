"""The charts of a run, drawn for a page without a kernel."""

from __future__ import annotations

import zlib
from base64 import b64encode
from contextlib import ExitStack
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from distrain_nb.run import displays
from distrain_nb.run.charts import drawing, figure
from distrain_nb.run.charts.figure import chart_data, packed_numbers, points_a_line
from distrain_nb.run.charts.lines import Metrics, OverlaidMetrics
from distrain_nb.run.pages.media import index
from distrain_nb.run.pages.overlay import title
from distrain_nb.run.pages.query import flag
from distrain_nb.run.streams import streams

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from distrain_nb.run.metrics.events import EventFolder
    from distrain_nb.run.pages.protocol import ChartsAnswer, DrawnCharts
    from distrain_nb.run.pages.query import Query
    from distrain_nb.run.run import Run

# Of each open folder of events: its changes, and the checksum of its lines after them.
_newest: WeakKeyDictionary[EventFolder, tuple[int, str]] = WeakKeyDictionary()


def charts(folder: Path, query: Query, end: bool) -> ChartsAnswer:
    """Return the charts of the run in a folder: metrics, times, resources, and media of its files.

    They are left out if the page has `seen` them in this state. With `drawn`, the answer has
    drawings of the lines too: a page shows them until plotly has drawn. *end* is passed on.
    """
    run_streams = streams(folder)
    with (
        run_streams.metrics.read() as events,
        run_streams.times.read() as times,
        run_streams.resources.read() as resources,
    ):
        shown = displays.rows(folder)
        state = "-".join([*map(_state_of, (events, times, resources)), _checksum(shown)])
        is_new, drawn = state != query.get("seen"), flag(query, "drawn")

        def answered(of: EventFolder) -> DrawnCharts | None:
            return _drawn(Metrics(folder, events=of), drawn) if is_new else None

        return {
            "seen": state,
            "end": end,
            "metrics": answered(events),
            "times": answered(times),
            "resources": answered(resources),
            "media": index(events.non_scalars) if is_new else None,
            "displays": shown if is_new else None,
        }


def overlay(runs: Iterable[Run], query: Query) -> ChartsAnswer:
    """Return the metrics of several runs in one set of charts, in the form of `charts`."""
    chosen = sorted({run.id: run for run in runs}.values(), key=lambda run: run.id)
    end = all(run.status.state.final for run in chosen)  # before the metrics: a run may end
    with ExitStack() as reading:  # by number: in two orders, two threads could wait for each other
        events = {
            run.id: reading.enter_context(streams(run.folder).metrics.read()) for run in chosen
        }
        state = "-".join(f"{number}.{_state_of(of)}" for number, of in events.items())
        is_new = state != query.get("seen")
        runs_metrics = {title(run): Metrics(run.folder, events=events[run.id]) for run in chosen}
        metrics = OverlaidMetrics(runs_metrics) if is_new else None
        return {
            "seen": state,
            "end": end,
            "metrics": _drawn(metrics, flag(query, "drawn")) if metrics else None,
            "times": None,
            "resources": None,
            "media": None,
            "displays": None,
        }


def _state_of(events: EventFolder) -> str:
    """Return a checksum that changes with every new point, value and note."""
    changes, newest = _newest.get(events, (-1, ""))
    if changes != events.changes:  # the lines of a thousand ranks take a while
        lines = [(key, events.points(key)) for key in events.keys]
        newest = _checksum([(*key, len(of), *of[-1:].tolist()) for key, of in lines])
        _newest[events] = events.changes, newest
    return _checksum((newest, events.non_scalars.count, events.notes))


def _checksum(value: object) -> str:
    return f"{zlib.crc32(repr(value).encode()):x}"


def _drawn(metrics: Metrics, drawn: bool) -> DrawnCharts | None:
    keys = figure.shown(metrics.keys, metrics.stacked)
    if not keys:
        return None
    points = points_a_line(keys)
    lines = {key: metrics.line(key, points) for key in keys}
    return {
        "sheet": drawing.charts(metrics) if drawn else drawing.sheet(metrics, lines, drawn=False),
        "shape": chart_data(metrics, lines),
        "lines": [_as_text(packed_numbers(line)) for line in lines.values()],
    }


def _as_text(line: dict[str, object]) -> dict[str, object]:
    return {
        name: b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in line.items()
    }
