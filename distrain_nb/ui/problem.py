"""A problem that keeps a cell from running: what it is, where, why and its repairs, made of an
error.

A problem that keeps a cell from running, as text for a terminal and as HTML without scripts.

Shows what keeps a cell from running: a panel on a page, text elsewhere.
"""

from __future__ import annotations

import html
import re
import tokenize
from dataclasses import dataclass, field
from difflib import ndiff
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from distrain_nb.findings import Severity
from distrain_nb.layout.options import OPTIONS, flag
from distrain_nb.repairs import head_lines
from distrain_nb.run.summary import plural
from distrain_nb.secrets import env_values, redacted, redacted_options
from distrain_nb.ui import outputs
from distrain_nb.ui.frontend import frontend
from distrain_nb.ui.outputs import LITERAL, OWN_KEYS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from distrain_nb.errors import DistrainError
    from distrain_nb.findings import Finding, Fix

LINES_AROUND = 1
_PLACE = re.compile(r"^(Cell In\[\d+\]|[^,]*), line (\d+)")
_NAMED = re.compile(r"(?<![\w-])--?[a-z][\w-]*|(?<=')[^']+(?=')")


@dataclass(frozen=True)
class Excerpt:
    """Lines of a cell with their numbers (1-based), one of them marked, and there some columns."""

    lines: tuple[tuple[int, str], ...]
    marked: int
    begin: int = 0
    end: int = 0


@dataclass(frozen=True)
class CellRepair:
    """A way out: what it does, and the line of the cell that it leads to."""

    label: str
    line: str
    fix: Fix[str] = field(repr=False)


@dataclass(frozen=True)
class Point:
    """One thing that is wrong; `more` is what the message has besides its first line."""

    message: str
    more: str
    where: str
    code: str
    excerpt: Excerpt | None
    repairs: tuple[CellRepair, ...]


@dataclass(frozen=True)
class Cells:
    """The text of the cell that is running, from its magic's line on, and of others by label.

    `placeholders` are what in the text stands for values of the notebook, as `{token}` does, and
    `secrets` the values that no message may show; None where the text has them itself.
    """

    text: str
    label: str
    others: Mapping[str, str] = field(default_factory=dict)
    placeholders: Collection[str] = ()
    secrets: Collection[str] | None = None

    def source(self, label: str) -> str | None:
        """Return a cell or file as it may be shown."""
        if label == self.label:
            return self.shown(self.text)
        text = self.others.get(label) or _script(label)
        return None if text is None else self.shown(text)

    def shown(self, text: str) -> str:
        """Return a cell's text without the values of `--env`, and what looks like a secret."""
        head, code = _parted(text)
        return redacted_options(head, self.placeholders) + redacted(code)

    def located(self, message: str) -> str:
        """Return a message as it may be shown."""
        return redacted(message, self._hidden)

    @cached_property
    def _hidden(self) -> Collection[str]:
        variables = env_values(_parted(self.text)[0])
        return tuple(variables) if self.secrets is None else self.secrets


def _parted(text: str) -> tuple[str, str]:
    """Return the magic's line, and the code with the end of that line."""
    head = "\n".join(text.split("\n")[: head_lines(text)])
    return head, text[len(head) :]


def _script(path: str) -> str | None:
    """Return the text of a Python file that a finding is about, where it is here."""
    try:
        with tokenize.open(path) as file:
            return file.read() if path.endswith(".py") else None
    except (OSError, SyntaxError):
        return None


def points_of(findings: Iterable[Finding], cells: Cells) -> tuple[Point, ...]:
    """Return everything that was found, with the places and repairs in these cells."""
    return tuple(_point(finding, cells) for finding in findings)


def repaired(point: Point, number: int, text: str) -> str:
    """Return a cell's text after one of the repairs."""
    return point.repairs[number].fix.apply(text)


def _point(finding: Finding, cells: Cells) -> Point:
    message, _, more = cells.located(finding.message).partition("\n")
    excerpt = _excerpt(finding, cells)
    is_said = excerpt is not None or finding.where in finding.message
    where = "" if is_said and not _PLACE.match(finding.where) else cells.located(finding.where)
    repairs = tuple(repair for fix in finding.fixes if (repair := _repair(fix, cells)))
    return Point(message, more, where, finding.code, excerpt, repairs)


def _repair(fix: Fix[Any], cells: Cells) -> CellRepair | None:
    """Return a repair as the page shows it; None where it does not change anything."""
    before, after = (cells.shown(text).split("\n") for text in (cells.text, fix.apply(cells.text)))
    changed = [line[2:] for line in ndiff(before, after) if line[0] == "+"]
    return CellRepair(cells.located(fix.label), changed[0], fix) if changed else None


def _excerpt(finding: Finding, cells: Cells) -> Excerpt | None:
    match = _PLACE.match(finding.where)
    if match is None:
        return _of_options(finding, cells.shown(cells.text))
    source = cells.source(match[1])
    lines = (source or "").split("\n")
    number = int(match[2])
    if source is None or number > len(lines):
        return None
    named = re.search(r"`([^`]+)`", finding.message)
    begin, end = _span(lines[number - 1], named[1] if named else "")
    return _around(lines, number, begin, end)


def _of_options(finding: Finding, text: str) -> Excerpt | None:
    """Return the word of the magic's line that a finding is about, with the value behind an
    option."""
    lines = text.split("\n")
    head = lines[: head_lines(text)]
    named = [finding.where, *_as_option(finding.where), *_NAMED.findall(finding.message)]
    for word in filter(None, named):
        for number, line in enumerate(head, 1):
            value = r"(?:[ =][^\s-]\S*)?" if word.startswith("-") else ""
            match = re.search(rf"(?<!\S){re.escape(word)}(?![^\s=]){value}", line)
            if match:
                return Excerpt(((number, line),), number, match.start(), match.end())
    return None


def _as_option(where: str) -> tuple[str, ...]:
    """Return how the option of a field is written: `primary.accelerator_count` is set by
    `--primary`, `ranks_per_replica` by `-n` too."""
    first = where.partition(".")[0].partition(" ")[0]
    names = next((option.names for option in OPTIONS if option.field == first), ())
    return names or ((flag(first),) if first.isidentifier() else ())


def _span(line: str, name: str) -> tuple[int, int]:
    match = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", line) if name else None
    return match.span() if match else (0, 0)


def _around(lines: list[str], number: int, begin: int, end: int) -> Excerpt:
    first = max(1, number - LINES_AROUND)
    shown = lines[first - 1 : number + LINES_AROUND]
    while len(shown) > number - first + 1 and not shown[-1].strip():
        del shown[-1]
    return Excerpt(tuple(enumerate(shown, first)), number, begin, end)


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


SHOWN = "The cell was not executed; the problems are listed above."


def show_problem(error: DistrainError, cells: Cells) -> None:
    """Display it below the running cell, and leave to IPython what the display doesn't have."""
    points = points_of(error.findings, cells)
    if not frontend().has_widgets:
        error.rendered = as_text(points, colours=True)
        return
    _display(points, Severity.ERROR)
    error.rendered = SHOWN


def show_warnings(findings: Sequence[Finding], cells: Cells) -> None:
    """Display what does not keep a cell from running: in lines where it has no repair."""
    if any(finding.fixes for finding in findings) and frontend().has_widgets:
        _display(points_of(findings, cells), Severity.WARNING)
        return
    for finding in findings:
        outputs.say(cells.located(str(finding)))


def _display(points: tuple[Point, ...], severity: Severity) -> None:
    key = f"problem-{uuid4().hex}"
    page = style() + as_html(points, key, severity)
    outputs.show({"text/html": page, "text/plain": as_text(points)})
    if any(point.repairs for point in points):
        _offer_repairs(points, key)


def _offer_repairs(points: tuple[Point, ...], key: str) -> None:
    """Let the page make buttons of the repairs: this process says what they make of a cell."""
    import traitlets

    from distrain_nb.ui.widgets import STATIC, Widget

    class Repairs(Widget):
        _esm = STATIC / "problem.js"

        key = traitlets.Unicode().tag(sync=True)

    def on_message(widget: Any, message: dict[str, Any], _: Any) -> None:
        point, number = points[int(message["point"])], int(message["repair"])
        text = repaired(point, number, str(message["source"]))
        widget.send({"kind": "repaired", "id": message["id"], "source": text})

    Repairs(key=key).on_msg(on_message)


@lru_cache(maxsize=1)
def style() -> str:
    from distrain_nb.ui.widgets import STATIC

    css = (STATIC / "problem.css").read_text(encoding="utf-8")
    return f"<style>{' '.join(css.split())}</style>"
