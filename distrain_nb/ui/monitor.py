"""The monitor: a run's view below its cell, whatever the frontend can show."""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from distrain_nb.run.answers import answer
from distrain_nb.run.facts import facts
from distrain_nb.run.log import LogReader
from distrain_nb.run.streams import RESOURCES_FOLDER
from distrain_nb.ui import document
from distrain_nb.ui.lines import Metrics
from distrain_nb.ui.tail import Batch, Tail
from distrain_nb.ui.terminal import TerminalView

if TYPE_CHECKING:
    from distrain_nb.run import Run
    from distrain_nb.ui.live import LiveView

REFRESH_EVERY_S = 0.1
NOTHING = Batch(0, (), ())


class Frontend(Enum):
    """What shows the output of this process."""

    TERMINAL = "terminal"
    DOCUMENT = "document"
    WIDGETS = "widgets"


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
        self._facts = facts(run)
        self._frontend = frontend()
        self._live: LiveView | None = None
        self._terminal = TerminalView(self._metrics)
        self._due = 0.0
        self._places: list[Any] = []

    @property
    def shows_report(self) -> bool:
        """Whether the report of a failure stands in the view, before the reader's eyes."""
        return self._frontend is Frontend.WIDGETS

    def show(self) -> None:
        """Display the run below the cell that is running."""
        if self._frontend is Frontend.WIDGETS:
            from distrain_nb.ui.live import LiveView

            run = self._run
            ask = partial(answer, run)
            self._live = LiveView(run.id, self._tail, self._metrics, run.cancel, ask)
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
            self._terminal.end(self._facts)
        else:
            self._leave_document()

    def follow(self) -> threading.Thread:
        """Let the cell go, and keep the view current from a thread until the run has ended."""
        if self._live:
            self._live.let_go()
        # In the cell's own context, so that what the thread sends belongs to the cell.
        context = contextvars.copy_context()
        name = f"distrain-monitor-{self._run.id}"
        thread = threading.Thread(target=context.run, args=(self._follow,), name=name, daemon=True)
        if self._frontend is Frontend.TERMINAL and not self._facts.final:
            self._terminal.let_go(self._facts)
        else:
            thread.start()
        return thread

    def _follow(self) -> None:
        try:
            while not self._facts.final:
                time.sleep(REFRESH_EVERY_S)
                self.refresh()
            self.finish()
        except FileNotFoundError:  # the run has been deleted
            return

    def _update(self) -> bool:
        """Read and show what is new; say whether there were new lines."""
        self._facts = facts(self._run)
        records = self._log.records()
        news = self._tail.add(records) if records else NOTHING
        if self._live:
            self._live.show(self._facts, news, bool(records))
        elif self._frontend is Frontend.TERMINAL:
            self._terminal.show(self._facts, news, bool(records))
        self._due = time.monotonic() + REFRESH_EVERY_S
        return bool(records)

    def _reserve_places(self) -> None:
        """Outputs of this cell that can be replaced later, also from a thread."""
        if self._frontend is Frontend.TERMINAL:
            return
        from IPython.display import DisplayHandle

        self._places = [DisplayHandle(f"distrain-{uuid4().hex}") for _ in range(2)]
        self._places[0].display(self._first_bundle(), raw=True)
        self._places[1].display({"text/plain": ""}, raw=True)

    def _first_bundle(self) -> dict[str, Any]:
        text = f"{self._facts.line(time.time())}; its log: %distrain logs {self._facts.id}"
        if self._live is None:
            return {"text/plain": text}
        widget = {"version_major": 2, "version_minor": 0, "model_id": self._live.widget.model_id}
        return {"application/vnd.jupyter.widget-view+json": widget, "text/plain": text}

    def _leave_document(self) -> None:
        if self._live:
            self._live.charts.refresh(last=True)
        self._metrics.read()
        bundle = document.run_bundle(self._facts, self._tail, self._metrics)
        if self._live is None:
            self._places[0].update(bundle, raw=True)
            resources = Metrics(self._run.folder, RESOURCES_FOLDER)
            resources.read()
            self._places[1].update(document.chart_bundle(self._metrics, resources), raw=True)
            return
        bundle["text/html"] = f"{_place_of(self._live)}{bundle['text/html']}"
        # The live charts move over while they still stand below the log, and so stay as they are.
        self._places[1].update(self._live.charts.still(), raw=True)
        self._live.charts.move()
        self._places[0].update(bundle, raw=True)
        self._live.end()


def _place_of(view: LiveView) -> str:
    """Where the live view may go on in a document, as long as the page has its widget."""
    return f'<i hidden data-distrain-live="{view.key}"></i>'


def frontend() -> Frontend:
    """What shows the output: a terminal, a document that is executed in one go, or a page."""
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel") or _is_jupyter_console():
        return Frontend.TERMINAL
    parent = shell.get_parent() or {}
    asks = parent.get("content", {}).get("allow_stdin", True)
    return Frontend.WIDGETS if asks else Frontend.DOCUMENT


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _is_jupyter_console() -> bool:
    """Whether the kernel was started by `jupyter console`, which shows text only."""
    import os

    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.endswith((b"jupyter-console", b"jupyter_console")) for word in words[:3])
