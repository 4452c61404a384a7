"""The monitor: a run's view below its cell, whatever the frontend can show."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from distrain_nb.errors import RunUnreadable
from distrain_nb.run.annotation import annotate
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.log.reader import LogReader
from distrain_nb.run.metrics.step_times import StepTimesFolder
from distrain_nb.run.pages.answers import answer
from distrain_nb.run.summary import summary_of
from distrain_nb.saved import document, unstyled
from distrain_nb.saved.tail import Batch, Tail
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import Frontend, answers_while_busy, frontend, page_lacks_widgets
from distrain_nb.ui.terminal import TerminalView
from distrain_nb.worker.files.folder import RESOURCES_FOLDER

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from distrain_nb.run import Run
    from distrain_nb.ui.live import LiveView

REFRESH_EVERY_S = 0.1
# A page shows a widget within seconds; where it can't, the document is brought up to date instead.
SEEN_WITHIN_S, UNSEEN_EVERY_S = 10.0, 3.0
NOTHING = Batch(0, (), ())


class Monitor:
    """Shows a run from its submission to its end.

    `show` displays it, `refresh` brings it up to date (as often as one likes), `finish` leaves
    what stays. A cell that waits calls them itself; `follow` does it in a thread.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tail = Tail()
        self._metrics = Metrics(run.folder)
        self._log = LogReader(run.folder)
        self._summary = summary_of(run)
        self._frontend = frontend()
        self._live: LiveView | None = None
        self._terminal = TerminalView(self._metrics)
        self._due = 0.0
        self._places: list[outputs.CellOutput] = []
        self._let_go = False
        self._lacks_widgets = self._frontend.has_widgets and page_lacks_widgets()
        self._unseen_due = time.monotonic() + (0 if self._lacks_widgets else SEEN_WITHIN_S)

    @property
    def shows_report(self) -> bool:
        """Whether the report of a failure stands in the view, before the reader's eyes."""
        return self._frontend is not Frontend.TERMINAL

    def show(self) -> None:
        """Display the run below the cell that is running."""
        if self._frontend.has_widgets:
            self._live = self._live_view()
        self._reserve_places()
        self._update()

    def refresh(self) -> None:
        """Show what is new; does nothing when it was called a moment ago."""
        if time.monotonic() >= self._due:
            self._update()

    def finish(self) -> None:
        """Show how it ended, and leave a view that needs neither a kernel nor scripts."""
        while self._update():
            pass
        if self._frontend is Frontend.TERMINAL:
            self._terminal.end(self._summary)
        else:
            self._leave_document()

    def follow(self) -> threading.Thread:
        """Let the cell go, and keep the view current from a thread until the run has ended."""
        # A server that keeps the outputs takes nothing after the end of the cell; the page does.
        over = self._summary.final
        self._let_go = self._frontend is Frontend.SERVER and not over
        if self._live:
            self._live.stop_waiting()
        thread = outputs.in_background(self._follow, f"distrain-monitor-{self._run.id}")
        if self._frontend is Frontend.TERMINAL and not over:
            self._terminal.stop_waiting(self._summary)
        else:
            thread.start()
        if over:
            thread.join()
        return thread

    def _live_view(self) -> LiveView:
        from distrain_nb.ui.live import LiveView

        if records := self._log.records():
            self._tail.add(records)
        return LiveView(self._summary, self._tail, self._metrics, self._ask)

    def _ask(self, path: str, query: Mapping[str, str]) -> Mapping[str, object]:
        """Answer the page, keep its note and tags, stop the run, or resume it, which only a kernel
        does."""
        if path == "annotate":
            return annotate(self._run.folder, query).as_json()
        if path == "cancel":
            self._run.cancel()
            return {}
        if path != "resume":
            return answer(self._run, path, query)
        resumed = self._run.resume()
        return {"id": resumed.id, "name": resumed.name}

    def _follow(self) -> None:
        with suppress(RunUnreadable, FileNotFoundError):  # the run has been deleted
            while not self._summary.final:
                time.sleep(REFRESH_EVERY_S)
                self.refresh()
            self.finish()

    def _update(self) -> bool:
        """Read and show what is new; say whether there were new lines."""
        self._summary = summary_of(self._run)
        records = self._log.records()
        news = self._tail.add(records) if records else NOTHING
        if self._live:
            self._live.show(self._summary, news, bool(records))
            self._show_unseen(self._live)
        elif self._frontend is Frontend.TERMINAL:
            self._terminal.show(self._summary, news, bool(records))
        self._due = time.monotonic() + REFRESH_EVERY_S
        return bool(records)

    def _show_unseen(self, live: LiveView) -> None:
        """Show the current document in place of a widget that no page seems to show.

        It has the mark of the live view: a page that is only slow moves the view there.
        """
        if self._let_go or time.monotonic() < self._unseen_due or live.is_seen:
            return
        self._unseen_due = time.monotonic() + UNSEEN_EVERY_S
        by_server = self._frontend is Frontend.SERVER  # its page shows what that server tells it
        if self._lacks_widgets or by_server or answers_while_busy():
            self._leave_live(live, self._bundle(live))

    def _reserve_places(self) -> None:
        """Show empty outputs in this cell, which can be replaced later, also from a thread."""
        if self._frontend is Frontend.TERMINAL:
            return
        self._places = [
            outputs.show(bundle) for bundle in (self._first_bundle(), {"text/plain": ""})
        ]

    def _first_bundle(self) -> outputs.Bundle:
        line = self._summary.saved_line(time.time())
        text = f"{line}; its log: %distrain logs {self._summary.id}"
        bundle = {**self._reference(), "text/plain": text}
        if self._live is None or self._lacks_widgets:
            return bundle
        widget = {"version_major": 2, "version_minor": 0, "model_id": self._live.widget.model_id}
        shown = {"text/html": unstyled.placeholder(text), **bundle}
        return {"application/vnd.jupyter.widget-view+json": widget, **shown}

    def _leave_document(self) -> None:
        if self._live:
            self._live.draw(last=True)
        if self._live and self._let_go:
            self._live.end()
            return
        self._metrics.read()
        bundle = self._bundle(self._live)
        if self._live is None:
            times = Metrics(self._run.folder, events=StepTimesFolder(self._run.folder))
            resources = Metrics(self._run.folder, RESOURCES_FOLDER)
            times.read()
            resources.read()
            charts = self._of_run(document.chart_bundle(self._metrics, times, resources))
            outputs.replace_all((self._places[0], bundle), (self._places[1], charts))
            return
        self._leave_live(self._live, bundle)
        self._live.end()

    def _of_run(self, charts: outputs.Bundle) -> outputs.Bundle:
        """Return charts that need not be shown where the run is, which has them too."""
        reference = document.run_reference(self._run, "charts")
        return {**reference, **charts} if "text/html" in charts else charts

    def _bundle(self, live: LiveView | None) -> outputs.Bundle:
        """Return the document as it stands, with the place of the live view if there is one."""
        bundle = document.run_bundle(self._summary, self._tail, self._metrics)
        mark = live.mark if live else ""
        html = {"text/html": f"{mark}{bundle['text/html']}"}
        return {**self._reference(), **bundle, **html}

    def _reference(self) -> outputs.Bundle:
        return document.run_reference(self._run, final=self._summary.final)

    def _leave_live(self, live: LiveView, bundle: outputs.Bundle) -> None:
        charts = self._of_run(live.charts.still())
        replacements = [(self._places[0], bundle), (self._places[1], charts)]
        if self._frontend is Frontend.PAGE:
            # The live charts move over while they still stand below the log, and stay as they are.
            replacements.reverse()
        outputs.replace_all(*replacements)
