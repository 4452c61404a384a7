"""What was asked about the world, and from where."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SeenRead:
    """What was asked, as one would write it, and the innermost line of the user's own code.

    `direct`: that line asked itself, rather than a package that it calls.
    """

    what: str
    where: str
    direct: bool


@dataclass
class Site:
    """A place at the top level of a cell, or of a module: what was asked from there, and the names
    of the notebook whose objects changed meanwhile."""

    line: int
    column: int
    reads: list[SeenRead] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
