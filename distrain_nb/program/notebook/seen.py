"""What the extension saw the notebook's statements ask about the world."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import is_model
from distrain_nb.observed.sites import Site
from distrain_nb.program.notebook.history import first_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from distrain_nb.observed import Observer
    from distrain_nb.observed.changes import PartChange
    from distrain_nb.observed.modules import ModuleChange
    from distrain_nb.observed.sites import SeenRead
    from distrain_nb.program.notebook.history import Executed, Statement
    from distrain_nb.program.notebook.own_modules import OwnModule

_AWAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_COUNTS = (bool, int, str, type(None))


@dataclass(frozen=True)
class SeenReads:
    """Answers by statements; with no observer nothing was seen."""

    observer: Observer | None = None

    def saw(self, statement: Statement, module: OwnModule) -> bool:
        """Return whether a statement ran while the extension was there."""
        label, name = statement.label, module.namespace.get("__name__")
        return self.observer is not None and not {label, name} & self.observer.unseen

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

    def only_used(self, statement: Statement, name: str, value: Any) -> bool:
        """Return whether a statement had a function do something with a model that left no answer
        in it: most often the function asked whether to print."""
        model = is_model(value)
        return bool(self.observer and model and name not in statement.binds) and not self.fills(
            statement, name
        )

    def fills(self, statement: Statement, name: str) -> bool:
        """Return whether the object of that name changed while the statement asked for the world,
        or read what knows it."""
        if any(name in site.filled for site in self._sites(statement)):
            return True
        places = self.observer.originals.filled.get(name, ()) if self.observer else ()
        return any(_is_at(*place, statement) for place in places)

    def changed(self, statement: Statement, name: str) -> bool:
        """Return whether the statement changed a part of the object of that name, which it may have
        from the world: seen for what knows the world."""
        return any(is_at(change, statement) for change in self.changes(name))

    def changes(self, name: str) -> Collection[PartChange]:
        """What was seen to change in the object of a name that knows the world."""
        return self.observer.changes(name) if self.observer else ()

    def replaced(self, name: str, executed: Iterable[Executed]) -> Executed | None:
        """Return the statement that bound a name, which knew the world, by a function that it
        calls."""
        place = self.observer.replaced(name) if self.observer else None
        if place is None:
            return None
        return next((p for p in executed if _is_at(*place, p.statement)), None)

    def changed_parts(
        self, name: str, definition: Any
    ) -> dict[str, tuple[Any, tuple[str, str, str]]] | None:
        """Return the attributes that a definition has otherwise than its statement gave them, by
        their paths, with what tells so; None where nobody saw it."""
        return self.observer.originals.changed(name, definition) if self.observer else None

    def known_to(self, statement: Statement) -> set[str]:
        """Return the names that knew the world when a statement read them."""
        places = self.observer.readers(statement.label) if self.observer else {}
        node = statement.node
        return {n for place in places if _stands_in(Site(*place), node) for n in places[place]}

    def module_changes(self, modules: Collection[str]) -> Iterator[ModuleChange]:
        """Yield what statements that knew the world changed in modules, as it still is."""
        if self.observer:
            yield from self.observer.modules.changes(modules)

    def filled(self) -> set[str]:
        """Return every name whose object changed while some statement asked."""
        return self.observer.filled() if self.observer else set()

    def _sites(self, statement: Statement) -> Iterator[Site]:
        if self.observer is not None:
            sites = self.observer.sites(statement.label)
            yield from (site for site in sites if _stands_in(site, statement.node))


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
