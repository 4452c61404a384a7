"""The table of runs where a page can keep it current: what the page asks where no server answers.

It also draws the charts of a run that the reader attaches to, which needs the kernel either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.run import Store
from distrain_nb.run.annotation import annotate
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.compare import compare
from distrain_nb.run.run import delete
from distrain_nb.server import table
from distrain_nb.server.access import open_run
from distrain_nb.ui.charts import RunCharts, follow
from distrain_nb.ui.live_comparison import ComparisonCharts
from distrain_nb.ui.widgets import STATIC, LiveWidget, answers, mark

if TYPE_CHECKING:
    from collections.abc import Mapping


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
            delete(run)
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
