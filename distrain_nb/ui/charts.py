"""The live charts of a run: the kernel sends thinned lines, the page draws them.

Everything that a reader changes (smoothing, axes, zoom, what is shown) is done in the page, in
`page/src/charts/`, since a widget's click waits for the cell, and most cells wait for their run.
"""

from __future__ import annotations

import html
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import traitlets
from ipywidgets import HTML

from distrain_nb.run.charts import drawing, figure
from distrain_nb.run.charts.lines import ChartLine, Metrics
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.saved import document
from distrain_nb.ui.live_media import LiveDisplays, LiveMedia
from distrain_nb.ui.outputs import in_background
from distrain_nb.ui.widgets import STATIC, LiveWidget, about_run, answers, mark, plotly
from distrain_nb.worker.files.folder import RESOURCES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from distrain_nb.run import Run
    from distrain_nb.ui.live_comparison import ComparisonCharts

SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 1.0
SHARE_OF_TIME = 0.2
BYTES_A_SECOND = 500_000
BYTES_A_POINT = 12
BYTES_OF_RANGE = 8  # more for a point of a thinned line
ARRIVES_WITHIN_S = 10.0  # plotly's code, in the page


class ChartsWidget(LiveWidget):
    """Charts in one figure, and the tools above it.

    They are those of one `run`, or of `runs` that are compared, as in `3,5`. `path` is what the
    page asks for finer points, and with a `title` it is folded. `sheet` is what stands around the
    lines: at first with a drawing of them.
    """

    _esm = STATIC / "charts.js"
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    runs = traitlets.Unicode().tag(sync=True)
    path = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    sheet = traitlets.Unicode().tag(sync=True)
    shape = traitlets.Dict().tag(sync=True)
    lines = traitlets.List().tag(sync=True)


class LiveCharts:
    """Draws what `metrics` has, in a widget that is created with its first line."""

    def __init__(self, metrics: Metrics, create: Callable[..., ChartsWidget]) -> None:
        self._metrics = metrics
        self._create = create
        self._lines: dict[Any, ChartLine] = {}
        self._due = 0.0
        self._came = 0.0
        self._sheet = ""
        self._undrawn = False
        self.widget: Any = None

    def refresh(self, *, last: bool = False) -> None:
        """Read what is new; draw it, 10 times a second at most and a fifth of the time at most.

        The `last` time it is drawn at once.
        """
        now = time.monotonic()
        if now < self._due and not last:
            return
        stale = self._metrics.read()
        if stale:
            self._draw(stale)
        spent = time.monotonic() - now
        sent = sum(
            len(line.x) * (BYTES_A_POINT + line.is_thinned * BYTES_OF_RANGE)
            for line in self._lines.values()
        )
        wait = max(SHORTEST_WAIT_S, spent / SHARE_OF_TIME, sent / BYTES_A_SECOND)
        self._due = time.monotonic() + min(wait, LONGEST_WAIT_S)

    @property
    def _arriving(self) -> bool:
        """Whether the page may have no code to draw them with yet, or says that it can't."""
        return self._undrawn or time.monotonic() < self._came + ARRIVES_WITHIN_S

    def _heard(self, _: Any, message: dict[str, Any], __: Any) -> None:
        self._undrawn = self._undrawn or message.get("kind") == "undrawn"

    @property
    def mark(self) -> str:
        """Where the charts may stand in a document, as long as the page has their widget."""
        return mark(self.widget)

    def _draw(self, stale: tuple[Any, ...]) -> None:
        keys = figure.shown(self._metrics.keys, self._metrics.stacked)
        points = figure.points_a_line(keys)
        for key in set(stale).intersection(keys):
            self._lines[key] = self._metrics.line(key, points)
        lines_by_key = {key: self._lines[key] for key in keys}
        shape = figure.chart_data(self._metrics, lines_by_key)
        lines = [figure.packed_numbers(line) for line in lines_by_key.values()]
        sheet = drawing.sheet(self._metrics, lines_by_key, drawn=False)
        if self.widget is None:
            drawn = drawing.charts(self._metrics)
            self.widget = self._create(sheet=drawn, shape=shape, lines=lines)
            self.widget.on_msg(self._heard)
            self._came = time.monotonic()
        else:
            with self.widget.hold_sync():
                if self._arriving or sheet != self._sheet:
                    self.widget.sheet = drawing.charts(self._metrics)
                self.widget.shape, self.widget.lines = shape, lines
        self._sheet = sheet


class RunCharts:
    """What the ranks of a run have shown, and its charts: its metrics, and below them what else its
    event files have, where its time goes, and what its ranks use of the machine.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._failure: Any = None
        self._metrics = metrics
        folder, title = metrics.folder, document.RESOURCES_TITLE
        self._times = Metrics(folder, events=StepTimesFolder(folder))
        self._resources = Metrics(folder, RESOURCES_FOLDER)
        self._displays = LiveDisplays(folder)
        self._of_metrics = LiveCharts(metrics, partial(_widget, folder, "metrics"))
        self._media = LiveMedia(metrics)
        self._of_times = LiveCharts(
            self._times, partial(_widget, folder, "times", title=document.TIMES_TITLE)
        )
        self._of_resources = LiveCharts(
            self._resources, partial(_widget, folder, "resources", title=title)
        )

    @property
    def _parts(self) -> tuple[LiveCharts | LiveMedia | LiveDisplays, ...]:
        charts = self._of_metrics, self._media, self._of_times, self._of_resources
        return self._displays, *charts

    @property
    def widgets(self) -> tuple[Any, ...]:
        """Those that there are so far, in the order in which they stand."""
        drawn = tuple(charts.widget for charts in self._parts if charts.widget)
        return (*drawn, self._failure) if self._failure else drawn

    def refresh(self, *, last: bool = False) -> None:
        """Draw what is new, the `last` time without waiting for a pause.

        Charts that fail must not fail the cell, nor hide how the run goes on.
        """
        if self._failure:
            return
        try:
            for charts in self._parts:
                charts.refresh(last=last)
        except Exception as error:
            self._failure = HTML(html.escape(f"The charts can't be drawn: {error!r}"))

    def still(self) -> dict[str, str]:
        """Return what stays in a document, by MIME type, with marks for live charts."""
        places = (
            (self._displays, document.still_displays(self._metrics)),
            (self._of_metrics, document.still_charts(self._metrics)),
            (self._media, document.still_media(self._metrics)),
            (self._of_times, document.still_charts(self._times, document.TIMES_TITLE)),
            (self._of_resources, document.still_charts(self._resources, document.RESOURCES_TITLE)),
        )
        drawn = "".join(f"<div>{live.mark}{markup}</div>" for live, markup in places)
        return document.charts_of(self._metrics, drawn)


def follow(runs: Sequence[Run], charts: RunCharts | ComparisonCharts) -> None:
    """Keep the charts current from a thread until all the runs have ended."""

    def refresh() -> None:
        while not all(run.state.final for run in runs):
            time.sleep(SHORTEST_WAIT_S)
            charts.refresh()
        charts.refresh(last=True)

    in_background(refresh, f"distrain-charts-{'-'.join(str(run.id) for run in runs)}").start()


def _widget(folder: Path, path: str, *, title: str = "", **drawn: Any) -> ChartsWidget:
    widget = ChartsWidget(
        folder.parents[1],
        run=int(folder.name),
        path=path,
        title=title,
        plotly=plotly().model_id,
        **drawn,
    )
    answers(widget, about_run(folder))
    return widget
