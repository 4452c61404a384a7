"""The view below a cell while its run goes on: widgets, kept current from any thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import traitlets
from ipywidgets import VBox

from distrain_nb.config import home
from distrain_nb.ui.charts import RunCharts
from distrain_nb.ui.frontend import kernel_id
from distrain_nb.ui.widgets import STATIC, LiveWidget, answers, mark
from distrain_nb.worker.supervisor.heartbeat import is_drawn, is_watched

if TYPE_CHECKING:
    from distrain_nb.run.charts.lines import Metrics
    from distrain_nb.run.summary import RunSummary
    from distrain_nb.saved.tail import Batch, Tail
    from distrain_nb.ui.widgets import Answer

WHOLE_EVERY_S = 2.0
ALWAYS_WHOLE_UP_TO = 200


class RunWidget(LiveWidget):
    """State line, error report, log and Stop. See `page/src/run/` for the other half."""

    _esm = STATIC / "run.js"
    _css = STATIC / "run.css"

    run = traitlets.Int().tag(sync=True)
    summary = traitlets.Dict().tag(sync=True)
    batch = traitlets.Dict().tag(sync=True)
    waiting = traitlets.Bool(False).tag(sync=True)
    kernel = traitlets.Unicode("").tag(sync=True)


class LiveView:
    """The displayed view: the run's widget, and its charts once there are metrics.

    `ask` answers what the page asks where no server does: (path, query) gives JSON values.
    """

    def __init__(
        self,
        summary: RunSummary,
        tail: Tail,
        metrics: Metrics,
        ask: Answer,
    ) -> None:
        self._tail = tail
        self._metrics = metrics
        self._seq = 1
        self._whole_due = 0.0
        self._behind = False
        self._heard_of = False
        self.charts = RunCharts(metrics)
        self._run = RunWidget(
            home(),
            run=summary.id,
            summary=_now(summary),
            batch=_batch(0, tail.all(), tail.total, from_start=True),
            waiting=True,
            kernel=kernel_id(),
        )
        answers(self._run, ask, self._hear)
        self.widget: Any = VBox([self._run])
        self.mark = mark(self._run)

    @property
    def is_seen(self) -> bool:
        """Whether a page has ever said that it shows this."""
        self._heard_of = self._heard_of or is_watched(self._metrics.folder)
        return self._heard_of

    def stop_waiting(self) -> None:
        """Note that the cell no longer waits for the run."""
        self._run.waiting = False

    def show(self, summary: RunSummary, news: Batch, changed: bool) -> None:
        """Bring the page up to date. `news` is what came since the last call, if it `changed`."""
        self._behind = self._behind or changed
        if is_watched(self._metrics.folder):
            pass  # the page has the lines from its server
        elif time.monotonic() >= self._whole_due or self._tail.total <= ALWAYS_WHOLE_UP_TO:
            self._send_whole()
        elif changed:
            self._send(news, from_start=False)
        # Last: a page that learns of the end before it has lines says that there are none.
        current = _now(summary)
        if {**self._run.summary, "now": current["now"]} != current:
            self._run.summary = current
        if not is_drawn(self._metrics.folder):
            self.draw()

    def draw(self, *, last: bool = False) -> None:
        """Bring the charts up to date, the `last` time without waiting for a pause."""
        self.charts.refresh(last=last)
        if len(self.widget.children) <= len(self.charts.widgets):
            self.widget.children = (self._run, *self.charts.widgets)

    def end(self) -> None:
        """Note that the run has ended; the page may still ask about it."""
        self._run.waiting = False
        self._run.batch = {}

    def _hear(self, kind: str) -> None:
        self._heard_of = True
        if kind == "resync":
            self._behind, self._whole_due = True, 0.0

    def _send_whole(self) -> None:
        if self._behind:
            self._send(self._tail.all(), from_start=True)
            self._whole_due = time.monotonic() + WHOLE_EVERY_S
            self._behind = False

    def _send(self, batch: Batch, *, from_start: bool) -> None:
        self._run.batch = _batch(self._seq, batch, self._tail.total, from_start=from_start)
        self._seq += 1


def _now(summary: RunSummary) -> dict[str, Any]:
    return {**summary.as_json(), "now": round(time.time(), 1)}


def _batch(number: int, batch: Batch, total: int, *, from_start: bool) -> dict[str, Any]:
    return {
        "seq": number,
        "whole": from_start,
        "first": batch.first,
        "total": total,
        "bars": [{"process": b.process, "stream": b.stream, "text": b.text} for b in batch.bars],
        "lines": batch.as_bytes(),
    }
