"""The media below a run's charts: histograms, images, texts, hyperparameters.

The kernel sends what there is; the page asks for what the reader opens, in `page/src/media.js`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.run.pages.media import index
from distrain_nb.ui.widgets import STATIC, LiveWidget, about_run, answers, mark, plotly

if TYPE_CHECKING:
    from distrain_nb.run.charts.lines import Metrics

LOOK_EVERY_S = 1.0


class MediaWidget(LiveWidget):
    """A folded list of each kind; `index` is that of `run.media`."""

    _esm = STATIC / "media.js"
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    index = traitlets.Dict().tag(sync=True)


class LiveMedia:
    """Shows what `metrics` has seen besides scalars, in a widget that exists from then on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._count = 0
        self._due = 0.0
        self.widget: Any = None

    def refresh(self, *, last: bool = False) -> None:
        """Show what is new, once a second at most, and the `last` time at once.

        Reads no files: the charts do.
        """
        now = time.monotonic()
        non_scalars = self._metrics.non_scalars
        if non_scalars.count == self._count or (now < self._due and not last):
            return
        self._due, self._count = now + LOOK_EVERY_S, non_scalars.count
        if self.widget is None:
            self.widget = _widget(self._metrics)
        else:
            self.widget.index = index(non_scalars)

    @property
    def mark(self) -> str:
        """Where it may stand in a document, as long as the page has the widget."""
        return mark(self.widget)


def _widget(metrics: Metrics) -> MediaWidget:
    folder = metrics.folder
    widget = MediaWidget(
        folder.parents[1],
        run=int(folder.name),
        plotly=plotly().model_id,
        index=index(metrics.non_scalars),
    )
    answers(widget, about_run(folder))
    return widget
