"""The live charts: one figure widget for all metrics of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from distrain_nb.ui import figure

if TYPE_CHECKING:
    from distrain_nb.ui.lines import Metrics

SHORTEST_WAIT_S = 0.1
SHARE_OF_TIME = 0.2


class LiveCharts:
    """Draws what `metrics` has. The widget exists from the first metric on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._drawn: dict[Any, Any] = {}
        self._tags: tuple[str, ...] = ()
        self._due = 0.0
        self._stale: set[Any] = set()
        self.widget: Any = None

    def refresh(self) -> None:
        """Read what is new; draw it, 10 times a second at most and a fifth of the time at most."""
        now = time.monotonic()
        if now < self._due:
            return
        self._stale.update(self._metrics.read())
        if self._stale:
            self._draw()
            self._stale.clear()
        spent = time.monotonic() - now
        self._due = time.monotonic() + max(SHORTEST_WAIT_S, spent / SHARE_OF_TIME)

    def close(self) -> None:
        if self.widget is not None:
            self.widget.close()

    def _draw(self) -> None:
        if self.widget is None:
            from plotly.graph_objects import FigureWidget

            self.widget = FigureWidget()
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
