"""Sites: statements of the user's code, and what each of them asked about the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


# No dataclasses in this room: each takes `%load_ext` half a millisecond or more.


class SeenRead(NamedTuple):
    """What was asked, as one would write it, and the innermost line of the user's own code.

    `direct`: that line asked itself, rather than a package that it calls.
    """

    what: str
    where: str
    direct: bool


class Site:
    """A place at the top level of a cell, or of a module: what was asked from there, and the names
    of the notebook whose objects changed meanwhile. `read` are the names that were read there, with
    what tells if they still stand for that; `sets` are variables of the environment set from there.

    `in_thread` says that a thread asked, and `beside` that another statement had started it, or
    that it went on when the statement was over. `starts` says that a command was run from there.
    `before` has the parts of what was named there, as they were when the statement began.
    """

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        self.reads: list[SeenRead] = []
        self.filled: set[str] = set()
        self.read: dict[str, Callable[[object], bool]] = {}
        self.sets: set[str] = set()
        self.before: dict[str, dict[str, str]] = {}
        self.in_thread = self.beside = self.starts = False

    def add(self, read: SeenRead, *, idle: bool) -> None:
        """Note what was asked; `idle` says that a thread asks between the cells."""
        if read not in self.reads:
            self.reads.append(read)
        self.in_thread |= idle
        self.beside |= idle
