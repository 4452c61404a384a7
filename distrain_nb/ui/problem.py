"""A problem that keeps a cell from running: what it is, where, why and its repairs, made of an
error.
"""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass, field
from difflib import ndiff
from functools import cached_property
from typing import TYPE_CHECKING, Any

from distrain_nb.layout.option import flag
from distrain_nb.layout.options import OPTIONS
from distrain_nb.repairs import head_lines
from distrain_nb.secrets import env_values, redacted, redacted_options

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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
