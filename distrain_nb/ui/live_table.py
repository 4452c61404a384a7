"""The table of runs where a page can keep it current: what the page asks where no server answers.

It also draws the charts of a run that the reader attaches to, which needs the kernel either way.

The table of a comparison where a page can keep it current.

The charts of a comparison where a page can keep them current.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traitlets

from distrain_nb.errors import OptionError
from distrain_nb.run import Store
from distrain_nb.run.annotation import annotate
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.compare import compare
from distrain_nb.run.pages.listing import overlaid
from distrain_nb.server import table
from distrain_nb.server.access import open_run
from distrain_nb.ui import document
from distrain_nb.ui.charts import ChartsWidget, LiveCharts, RunCharts, follow
from distrain_nb.ui.widgets import STATIC, LiveWidget, answers, mark, plotly

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class RunsWidget(LiveWidget):
    """Rows, actions and what they open. See `page/src/runs/` for the other half."""

    _esm = STATIC / "runs.js"
    _css = STATIC / "runs.css"


class LiveTable:
    """Answers the page of one displayed table, as long as the kernel lives."""

    def __init__(self) -> None:
        self._store = Store()
        self._charts: dict[str, RunCharts | ComparisonCharts] = {}
        self.widget = self._new_widget()
        self.mark = mark(self.widget)
        answers(self.widget, self._answer, self._hear)

    def _new_widget(self) -> Any:
        return RunsWidget(self._store.folder)

    def _hear(self, _: str) -> None:
        """Note that a page has sent something."""

    def _answer(self, path: str, query: dict[str, str]) -> Mapping[str, object]:
        if path in table.LISTS:
            return table.LISTS[path](self._store, query)
        if path == "charts":
            return {"charts": self._drawn(query.get("runs", ""))}
        run = open_run(self._store, query.pop("run", ""))
        if path == "cancel":
            run.cancel()
        elif path == "delete":
            if not table.delete(self._store, run):
                raise OptionError(f"run {run.id} has not ended: stop it first")
        elif path == "annotate":
            return annotate(run.folder, query).as_json()
        else:
            return answer(run, path, query)
        return {}

    def _drawn(self, numbers: str) -> list[str]:
        """Return the names by which the page finds the runs' charts; none where there are no
        metrics yet."""
        if numbers not in self._charts:
            runs = table.chosen_runs(self._store, {"runs": numbers})
            charts = (
                RunCharts(Metrics(runs[0].folder))
                if len(runs) == 1
                else ComparisonCharts(compare(runs))
            )
            charts.refresh()
            follow(runs, charts)
            self._charts[numbers] = charts
        return [widget.model_id for widget in self._charts[numbers].widgets]
