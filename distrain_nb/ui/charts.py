"""The live charts: one figure widget for all metrics of a run."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from distrain_nb.run.events import Key
from distrain_nb.run.records import POINT
from distrain_nb.ui import drawing, figure
from distrain_nb.ui.lines import thin

if TYPE_CHECKING:
    from collections.abc import Callable

    from distrain_nb.ui.lines import Metrics

SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
SHARE_OF_TIME = 0.2
ARRIVES_WITHIN_S = 10.0  # the 5 MB of plotly's own code, in the page


class LiveCharts:
    """Draws what `metrics` has.

    The widget exists soon after the first metric; until it can be seen `sketch` is given a drawing.
    """

    def __init__(self, metrics: Metrics, sketch: Callable[[str], None]) -> None:
        self._metrics = metrics
        self._sketch = sketch
        self._sketch_until = float("inf")
        self._drawn: dict[Any, Any] = {}
        self._tags: tuple[str, ...] = ()
        self._due = 0.0
        self._stale: set[Any] = set()
        self._plotly = threading.Thread(target=_import_plotly, daemon=True)
        self.widget: Any = None

    def refresh(self) -> None:
        """Read what is new; draw it, 10 times a second at most and a fifth of the time at most."""
        now = time.monotonic()
        if now < self._due:
            return
        self._stale.update(self._metrics.read())
        if self._stale:
            self._show()
        spent = time.monotonic() - now
        wait = min(max(SHORTEST_WAIT_S, spent / SHARE_OF_TIME), LONGEST_WAIT_S)
        self._due = time.monotonic() + wait

    def _show(self) -> None:
        if self._has_plotly():
            self._draw()
            self._stale.clear()
        if time.monotonic() < self._sketch_until:
            self._sketch(drawing.charts(self._metrics))

    def close(self) -> None:
        if self.widget is not None:
            self.widget.close()

    def _has_plotly(self) -> bool:
        """Importing it takes two seconds, in which the log must go on."""
        if self._plotly.ident is None:
            self._plotly.start()
        return not self._plotly.is_alive()

    def _draw(self) -> None:
        if self.widget is None:
            from plotly.graph_objects import FigureWidget

            self.widget = FigureWidget()
            self._sketch_until = time.monotonic() + ARRIVES_WITHIN_S
            self.widget._config = {**self.widget._config, **figure.CONFIG}
        with self.widget.batch_update():
            for key in self._stale & self._drawn.keys():
                self._drawn[key].update(figure.moving_parts(self._metrics.line(key)))
            self._draw_titles()
        self._add_lines()

    def _draw_titles(self) -> None:
        if self._tags and self._tags == self._metrics.tags:
            last = self._metrics.last()
            for place, title in enumerate(figure.titles(self._tags, last)):
                self.widget.layout.annotations[place].text = title["text"]

    def _add_lines(self) -> None:
        new = [key for key in self._metrics.keys if key not in self._drawn]
        if not new:
            return
        tags, series = self._metrics.tags, figure.series_of(self._metrics.keys)
        self.widget.update_layout(figure.layout(tags, self._metrics.last(), len(series) > 1))
        places = {tag: place for place, tag in enumerate(tags)}
        traces = [figure.trace(k, places[k.tag], series, self._metrics.line(k)) for k in new]
        self.widget.add_traces(traces)
        self._drawn |= zip(new, self.widget.data[-len(new) :], strict=True)
        self._tags = tags


def _import_plotly() -> None:
    """All that a figure needs: plotly imports most of itself when something is first set."""
    from plotly.graph_objects import Figure, FigureWidget

    layout = figure.layout(["a metric"], {}, several=True)
    key = Key("", "a metric")
    line = figure.trace(key, 0, [""], thin(np.zeros(2, dtype=POINT), 2))
    Figure(data=[line], layout=layout)
    FigureWidget.__name__  # noqa: B018 (its module is imported by being named)
