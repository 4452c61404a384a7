"""The table of runs where a page can keep it current: what the page asks where no server answers.

It also draws the charts of a run that the reader attaches to, which needs the kernel either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anywidget
import traitlets

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.run import Store
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.pages.compare import compare
from distrain_nb.server import table
from distrain_nb.server.access import fingerprint, open_run
from distrain_nb.ui.charts import RunCharts, follow
from distrain_nb.ui.compare_charts import ComparisonCharts
from distrain_nb.ui.widgets import STATIC

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunsWidget(anywidget.AnyWidget):
    """Rows, actions and what they open. See `page/src/runs/` for the other half."""

    _esm = STATIC / "runs.js"
    _css = STATIC / "runs.css"

    home = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)


class LiveTable:
    """Answers the page of one displayed table, as long as the kernel lives."""

    def __init__(self) -> None:
        self._store = Store()
        self._charts: dict[str, RunCharts | ComparisonCharts] = {}
        self.widget = self._new_widget(home=fingerprint(self._store.folder), key=uuid4().hex)
        self.widget.on_msg(self._heard)

    def _new_widget(self, **names: str) -> Any:
        return RunsWidget(**names)

    @property
    def key(self) -> str:
        return str(self.widget.key)

    @property
    def mark(self) -> str:
        """Where it stands in a document, in HTML."""
        return f'<i hidden data-distrain-live="{self.key}"></i>'

    def _heard(self, _: Any, message: dict[str, Any], __: Any) -> None:
        query = {name: str(value) for name, value in message.get("query", {}).items()}
        if message.get("kind") == "stop":
            self._answer("cancel", query)
        elif message.get("kind") == "ask":
            answered = self._answer(str(message["path"]), query)
            self.widget.send({"kind": "answer", "id": message["id"], **answered})

    def _answer(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        try:
            return {"body": self._body(path, query)}
        except (DistrainError, FileNotFoundError) as error:
            return {"error": str(error)}

    def _body(self, path: str, query: dict[str, str]) -> Mapping[str, object]:
        if path == "runs":
            return table.rows(self._store)
        if path == "compare":
            return table.side_by_side(self._store, query.get("runs", ""))
        if path == "charts":
            return {"charts": self._drawn(query.get("runs", ""))}
        run = open_run(self._store, query.pop("run", ""))
        if path == "cancel":
            run.cancel()
        elif path == "delete":
            if not table.delete(self._store, run):
                raise OptionError(f"run {run.id} has not ended: stop it first")
        else:
            return answer(run, path, query)
        return {}

    def _drawn(self, numbers: str) -> list[str]:
        """Return the names by which the page finds the runs' charts; none where there are no
        metrics yet."""
        if numbers not in self._charts:
            runs = table.chosen(self._store, numbers)
            charts = (
                RunCharts(Metrics(runs[0].folder))
                if len(runs) == 1
                else ComparisonCharts(compare(runs))
            )
            charts.refresh()
            follow(runs, charts)
            self._charts[numbers] = charts
        return [widget.model_id for widget in self._charts[numbers].widgets]
