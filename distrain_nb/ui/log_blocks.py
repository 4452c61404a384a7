"""The log's lines as a saved view has them: those of a traceback are one block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.ui.tail import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.run.log.reader import Line

FIRST = "Traceback (most recent call last):"
_BETWEEN = re.compile(r"(During handling of|The above exception|Traceback \(most recent).*")


class Block:
    """A traceback of one process, in the place of its first line; or else a line of its own."""

    def __init__(self, line: Line) -> None:
        self.lines = [line]
        self.is_traceback = _text(line) == FIRST
        self.raised = ""

    def takes(self, line: Line) -> bool:
        """Add the line if the traceback goes on with it."""
        text = _text(line)
        if not self.is_traceback or line.stream != self.lines[0].stream:
            return False
        if text and not text.startswith(" ") and not _BETWEEN.fullmatch(text):
            if self.raised:
                return False
            self.raised = text
        elif text == FIRST:
            self.raised = ""
        self.lines.append(line)
        return True

    def is_in(self, report: str) -> bool:
        """Return whether a report has the traceback whole."""
        return "\n".join(map(_text, self.lines)) in report


def blocks(lines: Iterable[Line]) -> list[Block]:
    """Return the lines in their order, however those of several processes alternate."""
    log_blocks: list[Block] = []
    open_of: dict[int, Block] = {}
    for line in lines:
        block = open_of.get(line.process)
        if block is None or not block.takes(line):
            block = open_of[line.process] = Block(line)
            log_blocks.append(block)
    return log_blocks


def _text(line: Line) -> str:
    return escapes.plain(shown_text(line)).rstrip()
