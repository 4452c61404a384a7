"""What keeps a cell from running, as HTML without scripts and as text."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.run.summary import plural
from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.ui.problem import CellRepair, Excerpt, Point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


RED, BOLD, SOFT, PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_QUOTED = re.compile(r"`([^`]+)`")


def heading(points: Sequence[Point]) -> str:
    """Say in a line what is wrong."""
    return points[0].message if len(points) == 1 else f"{plural(len(points), 'problem')}"


def as_text(points: Sequence[Point], *, colours: bool = False) -> str:
    """Return heading, places, reasons, and repairs as what to write."""
    text = "\n".join([f"{RED}{BOLD}{heading(points)}{PLAIN}", *_points(points)])
    return text if colours else re.sub(r"\x1b\[\d+m", "", text)


def _points(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        yield ""
        if len(points) > 1:
            yield f"{RED}{point.message}{PLAIN}"
        words = [point.where, f"[{point.code}]" if point.code else ""]
        if any(words):
            yield f"  {SOFT}{'  '.join(filter(None, words))}{PLAIN}"
        if point.excerpt:
            yield from _excerpt_lines(point.excerpt)
        yield from (f"  {line}" for line in point.more.splitlines())
        yield from (f"  → {_way(repair)}" for repair in point.repairs)


def _way(repair: CellRepair) -> str:
    return repair.label if _says_all(repair) else f"{repair.label}: {repair.line}"


def _says_all(repair: CellRepair) -> bool:
    named = _QUOTED.search(repair.label)
    return named is not None and named[1] == repair.line


def _excerpt_lines(excerpt: Excerpt) -> Iterator[str]:
    width = len(str(excerpt.lines[-1][0]))
    for number, line in excerpt.lines:
        is_marked = number == excerpt.marked
        sign, colour = ("▶", RED) if is_marked else (" ", SOFT)
        yield f"  {colour}{sign} {number:>{width}} │{PLAIN} {line}"
        if is_marked and excerpt.end > excerpt.begin:
            under = " " * excerpt.begin + "^" * (excerpt.end - excerpt.begin)
            yield f"    {' ' * width} {SOFT}│{PLAIN} {RED}{under}{PLAIN}"


def as_html(points: Sequence[Point], key: str, severity: Severity = Severity.ERROR) -> str:
    """Return the panel. What `key` marks gets buttons for its repairs where a page can give
    them."""
    body = "".join(_point_html(point, index, len(points) > 1) for index, point in enumerate(points))
    code = _code(points[0]) if len(points) == 1 else ""
    return (
        f'<div class="distrain dn-problem {LITERAL}" {OWN_KEYS} role="group"'
        f' data-distrain-problem="{key}" data-severity="{severity}" aria-label="{severity}">'
        f'<div class="dn-cause">{code}{_marked_up(heading(points))}</div>{body}</div>'
    )


def _point_html(point: Point, index: int, with_message: bool) -> str:
    content = _code(point) + _marked_up(point.message) if with_message else ""
    ways = "".join(_way_html(repair, index, number) for number, repair in enumerate(point.repairs))
    parts = [
        f'<div class="dn-what">{content}</div>' if content else "",
        f'<div class="dn-where">{html.escape(point.where)}</div>' if point.where else "",
        _excerpt_html(point.excerpt) if point.excerpt else "",
        f'<div class="dn-more">{_marked_up(point.more)}</div>' if point.more else "",
        f'<ul class="dn-repairs" aria-label="repairs">{ways}</ul>' if ways else "",
    ]
    return f'<div class="dn-point">{"".join(parts)}</div>' if any(parts) else ""


def _code(point: Point) -> str:
    return f'<span class="dn-code">{html.escape(point.code)}</span>' if point.code else ""


def _way_html(repair: CellRepair, index: int, number: int) -> str:
    line = html.escape(repair.line)
    leads = "" if _says_all(repair) else f'<span class="dn-leads">: <code>{line}</code></span>'
    return (
        f'<li data-point="{index}" data-repair="{number}" data-line="{line}">'
        f"{_marked_up(repair.label)}{leads}</li>"
    )


def _excerpt_html(excerpt: Excerpt) -> str:
    return f"<pre>{''.join(_row(excerpt, number, line) for number, line in excerpt.lines)}</pre>"


def _row(excerpt: Excerpt, number: int, line: str) -> str:
    if number != excerpt.marked:
        return f'<span class="dn-row" data-line="{number}">{html.escape(line)}\n</span>'
    begin, end = excerpt.begin, excerpt.end
    parts = [html.escape(part) for part in (line[:begin], line[begin:end], line[end:])]
    parts[1] = f"<mark>{parts[1]}</mark>" if parts[1] else ""
    return f'<span class="dn-row dn-marked" data-line="{number}">{"".join(parts)}\n</span>'


def _marked_up(text: str) -> str:
    """Mark text between backticks as code."""
    return _QUOTED.sub(lambda match: f"<code>{match[1]}</code>", html.escape(text, quote=False))
