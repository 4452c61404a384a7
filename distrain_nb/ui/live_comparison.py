"""A comparison where a page can keep it current: its table, and its charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.run import Store
from distrain_nb.run.pages.overlay import overlaid
from distrain_nb.saved import document
from distrain_nb.server import table
from distrain_nb.ui.charts import ChartsWidget, LiveCharts, follow
from distrain_nb.ui.widgets import STATIC, LiveWidget, answers, plotly

if TYPE_CHECKING:
    from distrain_nb.run.pages.compare import Comparison
    from distrain_nb.run.pages.protocol import CurvesAnswer


class ComparisonWidget(LiveWidget):
    """A table of the differences between the runs of these numbers, as in `3,5`. See
    `page/src/compare.js`."""

    _esm = STATIC / "compare.js"
    _css = STATIC / "runs.css"

    runs = traitlets.Unicode().tag(sync=True)


def live_table(compared: Comparison) -> ComparisonWidget:
    """Return a widget that answers the page for as long as the kernel lives."""
    store = Store(compared.runs[0].folder.parents[1])
    numbers = ",".join(str(run.id) for run in compared.runs)
    widget = ComparisonWidget(store.folder, runs=numbers)
    answers(widget, lambda *_: table.compared_runs(store, {"runs": numbers}))
    return widget


def live_charts(compared: Comparison) -> dict[str, str]:
    """Return charts that stay current until all runs have ended: what a document has of them."""
    charts = ComparisonCharts(compared)
    charts.refresh(last=True)
    follow(compared.runs, charts)
    return charts.still()


class ComparisonCharts:
    """The metrics of several runs in one set of charts, with a line for each run."""

    def __init__(self, compared: Comparison) -> None:
        self._store = Store(compared.runs[0].folder.parents[1])
        self._numbers = ",".join(str(run.id) for run in compared.runs)
        self._metrics = overlaid(compared.runs)
        self._live = LiveCharts(self._metrics, self._widget)

    @property
    def widgets(self) -> tuple[Any, ...]:
        """None while there are no metrics."""
        return (self._live.widget,) if self._live.widget else ()

    def refresh(self, *, last: bool = False) -> None:
        """Draw what is new, the `last` time without waiting for a pause."""
        self._live.refresh(last=last)

    def still(self) -> dict[str, str]:
        """Return what stays in a document, by MIME type, with a mark for live charts."""
        drawn = f"<div>{self._live.mark}{document.still_charts(self._metrics)}</div>"
        return document.charts_of(self._metrics, drawn)

    def _widget(self, **drawn: Any) -> ChartsWidget:
        widget = ChartsWidget(
            self._store.folder,
            runs=self._numbers,
            path="curves",
            plotly=plotly().model_id,
            **drawn,
        )
        answers(widget, self._curves)
        return widget

    def _curves(self, _: str, query: dict[str, str]) -> CurvesAnswer:
        return table.curves(self._store, {**query, "runs": self._numbers})
