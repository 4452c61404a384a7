"""A run in a terminal: its log as it comes, and a line for each state and long phase."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.run.summary import newest, tagged
from distrain_nb.saved.tail import shown_text

if TYPE_CHECKING:
    from distrain_nb.run.charts.lines import Metrics
    from distrain_nb.run.log.reader import Line
    from distrain_nb.run.summary import RunSummary
    from distrain_nb.saved.tail import Batch

TAG_COLOURS = (34, 33, 32, 35, 36, 31, 94, 93)
ERASE = "\r\x1b[K"


class TerminalView:
    """Prints. A line that is still moving is shown in place, where the terminal can do that."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._stage = ("", "")
        self._moving = ""
        self._can_move = sys.stdout.isatty()

    def show(self, summary: RunSummary, news: Batch, changed: bool) -> None:
        """Print what is new."""
        text = ""
        stage = (summary.state, summary.progress.phase if summary.progress else "")
        if stage != self._stage and not summary.final:
            self._stage = stage
            text += summary.line(time.time()) + "\n"
        if changed:
            text += "".join(self._line(summary, line) + "\n" for line in news.lines)
        self._write(text, self._moving_line(summary, news) if self._can_move else "")

    def end(self, summary: RunSummary) -> None:
        """Print how it ended, and the last metrics."""
        self._metrics.read()
        last = escapes.plain("  ".join(newest(self._metrics)))
        words = filter(None, (summary.line(time.time()), last))
        self._write("\n".join(words) + "\n", "")

    def stop_waiting(self, summary: RunSummary) -> None:
        """Print nothing any more: it would land in what the user types next."""
        self._write(
            f"run {summary.id} continues in the background; %distrain logs {summary.id} --follow\n",
            "",
        )

    def _write(self, text: str, bars: str) -> None:
        if not text and bars == self._moving:
            return
        print((ERASE if self._moving else "") + text + bars, end="", flush=True)
        self._moving = bars

    def _moving_line(self, summary: RunSummary, news: Batch) -> str:
        bars = (self._line(summary, bar) for bar in news.bars)
        return " ".join(filter(None, (summary.doing(time.time()), *bars)))

    def _line(self, summary: RunSummary, line: Line) -> str:
        if not self._can_move:
            return escapes.plain(tagged(summary.labels, line, shown_text(line)))
        colour = TAG_COLOURS[line.process % len(TAG_COLOURS)]
        text = tagged(summary.labels, line, f"{escapes.RESET}{shown_text(line)}")
        return escapes.coloured(f"\x1b[{colour}m{text}")
