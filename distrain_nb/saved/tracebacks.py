"""Tracebacks as views have them: as blocks of a saved log, and in the report of a failed run."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.saved.tail import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.run.log.reader import Line

FIRST = "Traceback (most recent call last):"
_BETWEEN = re.compile(r"(During handling of|The above exception|Traceback \(most recent).*")
_PLACE = re.compile(r'^\s*(File "|Cell In\[|  File )')
_CELL_PLACE = re.compile(r"^[ |+-]*(Cell In\[\d+\], line \d+(?:, in (?!<module>)[\w.<>]+)?)", re.M)
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b")


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


def report_line(error: str) -> str:
    """Return a report in a line: which run, what failed, and the line of the cell that last had a
    say."""
    message = ": ".join(error.splitlines()[:2])
    places = _CELL_PLACE.findall(error)
    return f"{message} ({places[-1]})" if places else message


def report_html(error: str) -> str:
    """Return a box with the report whole: its first line as a heading, places and errors marked."""
    if not error:
        return ""
    cause, _, rest = error.strip().partition("\n")
    body = "\n".join(map(_line, rest.splitlines()))
    lines = f"<pre>{body}</pre>" if rest else ""
    return f'<div class="dn-error"><div class="dn-cause">{html.escape(cause)}</div>{lines}</div>'


def _line(text: str) -> str:
    escaped = html.escape(text, quote=False)
    for pattern, name in ((_PLACE, "dn-place"), (_RAISED, "dn-raised")):
        if pattern.match(text):
            return f'<span class="{name}">{escaped}</span>'
    return escaped
