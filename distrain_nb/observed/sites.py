"""What was asked about the world, and from where."""

from __future__ import annotations

from typing import NamedTuple

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
    of the notebook whose objects changed meanwhile.

    `in_thread` says that a thread asked, and `beside` that another statement had started it, or
    that it went on when the statement was over.
    """

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        self.reads: list[SeenRead] = []
        self.filled: set[str] = set()
        self.in_thread = self.beside = False
