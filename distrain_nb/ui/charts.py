"""The live charts of a run: the kernel sends thinned lines, the page draws them.

Everything that a reader changes (smoothing, axes, zoom, what is shown) is done in the page, in
`static/charts.js`, since a widget's click waits for the cell, and most cells wait for their run.
"""

from __future__ import annotations

import gzip
import html
import time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anywidget
import traitlets

from distrain_nb.errors import OptionError, RunNotFound
from distrain_nb.run.answers import answer
from distrain_nb.run.run import Run
from distrain_nb.run.store import Store
from distrain_nb.run.streams import RESOURCES_FOLDER
from distrain_nb.server.doors import fingerprint
from distrain_nb.ui import document, drawing, figure
from distrain_nb.ui.lines import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.ui.lines import ChartLine

STATIC = Path(__file__).parent / "static"
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
SHARE_OF_TIME = 0.2
BYTES_A_SECOND = 1_000_000
BYTES_A_POINT = 12
POINTS_A_LINE, POINTS_IN_ALL = 1_000, 200_000
RESOURCES_TITLE = "Resources by rank"
ARRIVES_WITHIN_S = 10.0  # plotly's code, in the page
# One after the other they are the widget's module: what a part names stands in one before it.
PARTS = (
    "monitor/page", "monitor/ask", "monitor/places",
    "chart_lines", "plot_frame", "charts", "charts_view",
)  # fmt: skip


class PlotlyCode(anywidget.AnyWidget):
    """plotly.js for the page, as gzip packs it: all charts of a kernel share one."""

    _esm = "export default {};"

    code = traitlets.Bytes().tag(sync=True)


class ChartsWidget(anywidget.AnyWidget):
    """Charts in one figure, and the tools above it.

    `path` is what the page asks for finer points, `key` marks where it may stand in a document, and
    with a `title` it is folded.
    """

    _esm = "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8") for name in PARTS)
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    home = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    path = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    shape = traitlets.Dict().tag(sync=True)
    lines = traitlets.List().tag(sync=True)


class LiveCharts:
    """Draws what `metrics` has, in a widget that exists from its first line on.

    `path` and `title` are the widget's.
    """

    def __init__(self, metrics: Metrics, path: str = "metrics", title: str = "") -> None:
        self._metrics = metrics
        self._path = path
        self._title = title
        self._lines: dict[Any, ChartLine] = {}
        self._due = 0.0
        self._came = 0.0
        self.widget: Any = None

    def refresh(self) -> bool:
        """Read what is new; draw it, 10 times a second at most and a fifth of the time at most.

        Says whether there was anything.
        """
        now = time.monotonic()
        if now < self._due:
            return False
        stale = self._metrics.read()
        if stale:
            self._draw(stale)
        spent = time.monotonic() - now
        sent = sum(len(line.x) for line in self._lines.values()) * BYTES_A_POINT
        wait = max(SHORTEST_WAIT_S, spent / SHARE_OF_TIME, sent / BYTES_A_SECOND)
        self._due = time.monotonic() + min(wait, LONGEST_WAIT_S)
        return bool(stale)

    @property
    def arriving(self) -> bool:
        """Whether the page may have no code to draw them with yet."""
        return time.monotonic() < self._came + ARRIVES_WITHIN_S

    @property
    def mark(self) -> str:
        """Where the charts may stand in a document, as long as the page has their widget."""
        return f'<i hidden data-distrain-live="{self.widget.key}"></i>' if self.widget else ""

    def _draw(self, stale: tuple[Any, ...]) -> None:
        keys = figure.shown(self._metrics.keys)
        points = max(50, min(POINTS_A_LINE, POINTS_IN_ALL // len(keys)))
        for key in set(stale).intersection(keys):
            self._lines[key] = self._metrics.line(key, points)
        if self.widget is None:
            self.widget = _widget(self._metrics.folder, self._path, self._title)
            self._came = time.monotonic()
        with self.widget.hold_sync():
            self.widget.shape = _shape(self._metrics, self._lines)
            self.widget.lines = [_packed(self._lines[key]) for key in keys]


class RunCharts:
    """The charts of a run: its metrics, and below them what its ranks use of the machine.

    Until the page can draw them, `sketch` is given a drawing.
    """

    def __init__(self, metrics: Metrics, sketch: Callable[[str], None]) -> None:
        self._sketch = sketch
        self._failed = False
        self._metrics = metrics
        self._resources = Metrics(metrics.folder, RESOURCES_FOLDER)
        self._charts = (
            LiveCharts(self._metrics),
            LiveCharts(self._resources, "resources", RESOURCES_TITLE),
        )

    @property
    def widgets(self) -> tuple[Any, ...]:
        """Those that there are so far, in the order in which they stand."""
        return tuple(charts.widget for charts in self._charts if charts.widget)

    def refresh(self) -> None:
        """Charts that fail must not fail the cell, nor hide how the run goes on."""
        if self._failed:
            return
        try:
            of_metrics, of_resources = self._charts
            if of_metrics.refresh() and of_metrics.arriving:
                self._sketch(drawing.charts(self._metrics))
            of_resources.refresh()
        except Exception as error:
            self._failed = True
            words = html.escape(f"the charts can't be drawn: {error!r}")
            self._sketch(f'<div class="dn-note">{words}</div>')

    def still(self) -> dict[str, str]:
        """What stays in a document, by MIME type, with marks of where the live charts may stand."""
        drawn = (
            document.still_charts(self._metrics),
            document.still_charts(self._resources, RESOURCES_TITLE),
        )
        places = (
            f"<div>{charts.mark}{still}</div>"
            for charts, still in zip(self._charts, drawn, strict=True)
        )
        return {
            "text/html": f"{document.style()}{''.join(places)}",
            "text/plain": document.chart_text(self._metrics),
        }


def _widget(folder: Path, path: str, title: str) -> ChartsWidget:
    home, plotly = fingerprint(folder.parents[1]), _plotly().model_id
    widget = ChartsWidget(
        run=int(folder.name), home=home, key=uuid4().hex, path=path, title=title, plotly=plotly
    )

    def asked(_: Any, message: dict[str, Any], __: Any) -> None:
        if message.get("kind") == "ask":
            widget.send({"kind": "answer", "id": message["id"], **_answered(folder, message)})

    widget.on_msg(asked)
    return widget


def _answered(folder: Path, message: dict[str, Any]) -> dict[str, Any]:
    """The page asks the kernel where no server answers."""
    try:
        run = Run(Store(folder.parents[1]).get(folder.name))
        query = {name: str(value) for name, value in message.get("query", {}).items()}
        return {"body": answer(run, str(message.get("path")), query)}
    except (OptionError, RunNotFound) as error:
        return {"error": str(error)}


@lru_cache(maxsize=1)
def _plotly() -> PlotlyCode:
    """Read from where plotly is installed, without importing it, which takes two seconds."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("plotly, which draws the charts, is not installed")
    code = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return PlotlyCode(code=gzip.compress(code.read_bytes(), compresslevel=1))


def _shape(metrics: Metrics, lines: dict[Any, ChartLine]) -> dict[str, Any]:
    """What plotly is told of the figure besides the points; a layout for each number of columns."""
    keys = figure.shown(metrics.keys)
    tags, series = figure.tags_of(keys), figure.series_of(keys)
    last = metrics.last()
    return {
        "keys": [list(key) for key in keys],
        "traces": [figure.trace(key, tags.index(key.tag), series) for key in keys],
        "layouts": [
            figure.layout(tags, last, len(series) > 1, columns)
            for columns in range(1, figure.MOST_COLUMNS + 1)
        ],
        "config": figure.CONFIG,
        "dots": figure.DOTS_UP_TO,
        "thinned": any(len(lines[key].x) < lines[key].count for key in keys),
        "note": figure.left_out(metrics.keys),
    }


def _packed(line: ChartLine) -> dict[str, Any]:
    """Numbers as bytes, little-endian; `wide` steps are float64, everything else float32."""
    return {
        "step": line.x.tobytes(),
        "wide": line.x.itemsize == 8,
        "value": line.y.tobytes(),
        "seconds": line.seconds.tobytes(),
        "began": line.began,
    }
