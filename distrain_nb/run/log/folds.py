"""The tracebacks among the lines of a log, to be folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from distrain_nb.run.log.reader import Line

HEAD = "Traceback (most recent call last)"


def folds(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Return the first and the last place of each traceback, up to the line that names the
    exception.

    One that another process's lines part is given as far as it stands in one piece.
    """
    at = 0
    while at < len(lines):
        if HEAD not in lines[at].text:
            at += 1
            continue
        last = _last(lines, at)
        if last > at:
            yield at, last
        at = last + 1


def _last(lines: Sequence[Line], head: int) -> int:
    """Return the exception's name ends it; in a group everything is indented, and that line is
    not."""
    indented = lines[head].text[:1].isspace()
    for place in range(head + 1, len(lines)):
        line = lines[place]
        if (line.process, line.stream) != (lines[head].process, lines[head].stream):
            return place - 1
        if HEAD in line.text:
            return place - 1
        if not line.text[:1].isspace():
            return place - 1 if indented else place
    return len(lines) - 1
