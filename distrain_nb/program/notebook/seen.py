"""What the extension saw the notebook's statements ask about the world."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import is_model
from distrain_nb.observed.sites import Site
from distrain_nb.program.notebook.history import first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.observed import Observer
    from distrain_nb.observed.changes import PartChange
    from distrain_nb.observed.modules import ModuleChange
    from distrain_nb.observed.sites import SeenRead
    from distrain_nb.program.notebook.history import Executed, Statement
    from distrain_nb.program.notebook.local_modules import OwnModule

_AWAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_COUNTS = (bool, int, str, type(None))


@dataclass(frozen=True)
class SeenReads:
    """Answers by statements. If nobody `watched`, the observer has seen nothing."""

    observer: Observer
    watched: bool = True

    def saw(self, statement: Statement, module: OwnModule) -> bool:
        """Return whether a statement ran while the extension was there."""
        label, name = statement.label, module.namespace.get("__name__")
        return self.watched and not {label, name} & self.observer.unseen

    def reads(self, statement: Statement, name: str, value: Any) -> Iterator[SeenRead]:
        """What a statement asked that matters to the value that a name stands for.

        Packages ask for many reasons, so what they made counts if it is a rank, a size or a name.
        """
        outside = self.only_used(statement, name, value)
        for site in self._sites(statement):
            for read in site.reads:
                if outside and not _is_inside(read, statement):
                    continue
                if read.direct or _counts(value) or name in site.filled:
                    yield read

    def asked(self, statement: Statement) -> Iterator[SeenRead]:
        """Yield all that a statement asked."""
        for site in self._sites(statement):
            yield from site.reads

    def beside(self, statement: Statement) -> SeenRead | None:
        """Return what a thread asked beside the statement that had started it, or by luck within
        one that only starts it."""
        starts = _only_starts(statement.node)
        sites = (s for s in self._sites(statement) if s.beside or (s.in_thread and starts))
        return next((read for site in sites for read in site.reads), None)

    def only_used(self, statement: Statement, name: str, value: Any) -> bool:
        """Return whether a statement had a function do something with a model that left no answer
        in it: most often the function asked whether to print."""
        gives = not self.watched or name in statement.binds or self.fills(statement, name)
        return is_model(value) and not gives

    def fills(self, statement: Statement, name: str) -> bool:
        """Return whether the object of that name changed while the statement asked for the world,
        or read what knows it."""
        if any(name in site.filled for site in self._sites(statement)):
            return True
        places = self.observer.originals.filled.get(name, ())
        return any(_is_at(*place, statement) for place in places)

    def changed(self, statement: Statement, name: str) -> bool:
        """Return whether the statement changed a part of the object of that name, which it may have
        from the world: seen for what knows the world."""
        return any(is_at(change, statement) for change in self.observer.changes(name))

    def replaced(self, name: str, executed: Iterable[Executed]) -> Executed | None:
        """Return the statement that bound a name, which knew the world, by a function that it
        calls."""
        place = self.observer.replaced(name)
        return next((p for p in executed if _is_at(*place, p.statement)), None) if place else None

    def known_to(self, statement: Statement) -> set[str]:
        """Return the names that knew the world when a statement read them."""
        places = self.observer.readers(statement.label)
        node = statement.node
        return {n for place in places if _stands_in(Site(*place), node) for n in places[place]}

    def _sites(self, statement: Statement) -> Iterator[Site]:
        sites = self.observer.sites(statement.label)
        yield from (site for site in sites if _stands_in(site, statement.node))


def _only_starts(node: ast.stmt) -> bool:
    """Return whether a statement starts threads, and waits for none: `t.start()`."""
    called = {n.func.attr for n in ast.walk(node)
              if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}  # fmt: skip
    return "start" in called and called.isdisjoint(("join", "result", "wait"))


def is_at(change: PartChange | ModuleChange, statement: Statement) -> bool:
    """Return whether a change was seen when that statement had run."""
    return _is_at(change.label, change.line, change.column, statement)


def _is_at(label: str, line: int, column: int, statement: Statement) -> bool:
    return label == statement.label and _stands_in(Site(line, column), statement.node)


def _is_inside(read: SeenRead, statement: Statement) -> bool:
    label, _, line = read.where.rpartition(", line ")
    last = statement.node.end_lineno or statement.line
    return label == statement.label and statement.line <= int(line) <= last


def _counts(value: Any) -> bool:
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_counts, value))
    return isinstance(value, _COUNTS)


def _stands_in(site: Site, node: ast.stmt) -> bool:
    """Return whether a place is inside a statement; by lines where one of them isn't known in
    columns."""
    first, last = first_line(node), node.end_lineno or node.lineno
    if not site.line:
        return any(isinstance(inner, _AWAITING) for inner in ast.walk(node))
    if not first <= site.line <= last or site.column < 0:
        return first <= site.line <= last
    if site.line == first and site.column < node.col_offset:
        return False
    end: int = node.end_col_offset or 0
    return site.line < last or site.column < end
