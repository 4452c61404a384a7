"""A bar below the cell for work that takes long before there is a run to show."""

from __future__ import annotations

import html
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.run.summary import progress_text
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import Frontend, frontend
from distrain_nb.ui.terminal import ERASE

if TYPE_CHECKING:
    from distrain_nb.worker.files.status import Progress


class WorkBar(ABC):
    """Phase, bytes, and time since `begun` (seconds since the epoch): a call draws it anew.

    It is drawn as often as its output may be replaced; nothing is left of it after `clear`.
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._due = 0.0

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + outputs.pause_s()
            self.show(replace(progress, since=self._begun))

    @abstractmethod
    def show(self, progress: Progress) -> None:
        """Draw it."""

    @abstractmethod
    def clear(self) -> None:
        """Leave nothing behind."""


def work_bar(begun: float) -> WorkBar:
    """Return the bar that fits what shows the output."""
    return _TerminalBar(begun) if frontend() is Frontend.TERMINAL else _PageBar(begun)


class _TerminalBar(WorkBar):
    """One line that is written over, where the terminal can do that."""

    def show(self, progress: Progress) -> None:
        if sys.stdout.isatty():
            print(f"{ERASE}{progress_text(progress, time.time())}", end="", flush=True)

    def clear(self) -> None:
        if sys.stdout.isatty():
            print(ERASE, end="", flush=True)


class _PageBar(WorkBar):
    """An output of the cell that is replaced, at last by nothing."""

    _output: outputs.CellOutput | None = None

    def show(self, progress: Progress) -> None:
        if self._output is not None:
            self._output.replace(_bundle(progress))
        elif outputs.replaceable():
            self._output = outputs.show(_bundle(progress))

    def clear(self) -> None:
        if self._output is not None:
            self._output.replace({"text/plain": ""})


def _bundle(progress: Progress) -> dict[str, str]:
    from distrain_nb.saved.document import style

    text = progress_text(progress, time.time())
    value = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
    bar = f'<progress{value} aria-label="{html.escape(progress.phase)}"></progress>'
    page = f'<div class="distrain"><div class="dn-progress">{bar} {html.escape(text)}</div></div>'
    return {"text/html": f"{style()}{page}", "text/plain": text}
