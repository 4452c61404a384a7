"""The report of a failed run, made easy to read."""

from __future__ import annotations

import html
import re

_PLACE = re.compile(r'^\s*(File "|Cell In\[|  File )')
_CELL_PLACE = re.compile(r"^[ |+-]*(Cell In\[\d+\], line \d+(?:, in (?!<module>)[\w.<>]+)?)", re.M)
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b")


def in_a_line(error: str) -> str:
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
