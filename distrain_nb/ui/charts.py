"""The live charts of a run: the kernel sends thinned lines, the page draws them.

Everything that a reader changes (smoothing, axes, zoom, what is shown) is done in the page, in
`static/charts.js`, since a widget's click waits for the cell, and most cells wait for their run.
"""

from __future__ import annotations

import time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from distrain_nb.errors import OptionError, RunNotFound
from distrain_nb.run.answers import answer
from distrain_nb.run.run import Run
from distrain_nb.run.store import Store
from distrain_nb.server.doors import fingerprint
from distrain_nb.ui import drawing, figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.ui.lines import ChartLine, Metrics

STATIC = Path(__file__).parent / "static"
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
SHARE_OF_TIME = 0.2
BYTES_A_SECOND = 1_000_000
BYTES_A_POINT = 12
ARRIVES_WITHIN_S = 10.0  # the 5 MB of plotly's own code, in the page


class PlotlyCode(anywidget.AnyWidget):
    """plotly.js for the page: all charts of a kernel share one."""

    _esm = "export default {};"

    code = traitlets.Unicode().tag(sync=True)


class ChartsWidget(anywidget.AnyWidget):
    """All charts of a run in one figure, and the tools above it."""

    _esm = "".join(
        (STATIC / name).read_text(encoding="utf-8")
        for name in ("monitor/page.js", "monitor/ask.js", "chart_lines.js", "charts.js")
    )
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)
    home = traitlets.Unicode().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    shape = traitlets.Dict().tag(sync=True)
    lines = traitlets.List().tag(sync=True)


class LiveCharts:
    """Draws what `metrics` has.

    The widget exists from the first metric on; until it can be seen `sketch` is given a drawing.
    """

    def __init__(self, metrics: Metrics, sketch: Callable[[str], None]) -> None:
        self._metrics = metrics
        self._sketch = sketch
        self._sketch_until = float("inf")
        self._lines: dict[Any, dict[str, Any]] = {}
        self._due = 0.0
        self.widget: Any = None

    def refresh(self) -> None:
        """Read what is new; draw it, 10 times a second at most and a fifth of the time at most."""
        now = time.monotonic()
        if now < self._due:
            return
        stale = self._metrics.read()
        for key in stale:
            self._lines[key] = _packed(self._metrics.line(key))
        if stale:
            self._show()
        spent = time.monotonic() - now
        sent = sum(len(line["value"]) for line in self._lines.values()) // 4 * BYTES_A_POINT
        wait = max(SHORTEST_WAIT_S, spent / SHARE_OF_TIME, sent / BYTES_A_SECOND)
        self._due = time.monotonic() + min(wait, LONGEST_WAIT_S)

    def close(self) -> None:
        if self.widget is not None:
            self.widget.close()

    def _show(self) -> None:
        if self.widget is None:
            self.widget = _widget(self._metrics.folder)
            self._sketch_until = time.monotonic() + ARRIVES_WITHIN_S
        with self.widget.hold_sync():
            self.widget.shape = _shape(self._metrics)
            self.widget.lines = [self._lines[key] for key in self._metrics.keys]
        if time.monotonic() < self._sketch_until:
            self._sketch(drawing.charts(self._metrics))


def _widget(folder: Path) -> ChartsWidget:
    home = fingerprint(folder.parents[1])
    widget = ChartsWidget(run=int(folder.name), home=home, plotly=_plotly().model_id)

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
    return PlotlyCode(code=code.read_text(encoding="utf-8"))


def _shape(metrics: Metrics) -> dict[str, Any]:
    """What plotly is told of the figure besides the points; a layout for each number of columns."""
    tags, series = metrics.tags, figure.series_of(metrics.keys)
    last = metrics.last()
    return {
        "keys": [list(key) for key in metrics.keys],
        "traces": [figure.trace(key, tags.index(key.tag), series) for key in metrics.keys],
        "layouts": [
            figure.layout(tags, last, len(series) > 1, columns)
            for columns in range(1, figure.MOST_COLUMNS + 1)
        ],
        "config": figure.CONFIG,
        "dots": figure.DOTS_UP_TO,
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
