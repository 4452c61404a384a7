"""What a page shows around a run's charts: histograms, images, texts and hyperparameters below
them, and above them what the ranks have displayed.

The kernel sends what there is; the page asks for what the reader opens, in `page/src/media.js`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.run import displays
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.pages.media import index
from distrain_nb.ui.widgets import STATIC, LiveWidget, about_run, answers, mark, plotly

if TYPE_CHECKING:
    from pathlib import Path


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
            self.widget = _media_widget(self._metrics)
        else:
            self.widget.index = index(non_scalars)

    @property
    def mark(self) -> str:
        """Where it may stand in a document, as long as the page has the widget."""
        return mark(self.widget)


def _media_widget(metrics: Metrics) -> MediaWidget:
    folder = metrics.folder
    widget = MediaWidget(
        folder.parents[1],
        run=int(folder.name),
        plotly=plotly().model_id,
        index=index(metrics.non_scalars),
    )
    answers(widget, about_run(folder))
    return widget


class DisplaysWidget(LiveWidget):
    """What the ranks have shown; `rows` are those of `displays.rows`."""

    _esm = STATIC / "displays.js"
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    rows = traitlets.List().tag(sync=True)


class LiveDisplays:
    """Lists what the ranks of a run have shown, in a widget that exists from then on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._due = 0.0
        self.widget: Any = None

    def refresh(self, *, last: bool = False) -> None:
        """List what is new, once a second at most, and the `last` time at once."""
        now = time.monotonic()
        if now < self._due and not last:
            return
        self._due = now + LOOK_EVERY_S
        rows = displays.rows(self._folder)
        if self.widget is None and rows:
            self.widget = DisplaysWidget(
                self._folder.parents[1],
                run=int(self._folder.name),
                plotly=plotly().model_id,
                rows=rows,
            )
            answers(self.widget, about_run(self._folder))
        elif self.widget is not None and rows != self.widget.rows:
            self.widget.rows = rows

    @property
    def mark(self) -> str:
        """Where it may stand in a document, as long as the page has the widget."""
        return mark(self.widget)
