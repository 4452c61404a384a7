"""What the extension saw the statements of the notebook ask about the world."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.objects import is_model
from distrain_nb.observed.sites import Site
from distrain_nb.program.notebook.history import Executed, Statement
from distrain_nb.program.python.nodes import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distrain_nb.observed import Observer
    from distrain_nb.observed.sites import SeenRead
    from distrain_nb.program.notebook.local_modules import OwnModule
    from distrain_nb.program.proof.replay import Replay

_AWAITING = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_COUNTS = (bool, int, str, type(None))


@dataclass(frozen=True)
class SeenReads:
    """Answers by statements. If nobody `watched`, the observer has seen nothing."""

    observer: Observer
    watched: bool = True
    replay: Replay | None = None  # of the cells that asked

    def knows(self, name: str) -> tuple[str, Executed] | None:
        """Return the part of a name's object that another rank has otherwise, with the statement
        that gave it."""
        return self.replay.knows.get(name) if self.replay else None

    def gives(self, statement: Statement, name: str) -> bool:
        """Return whether a statement changed what a name stands for, as seen when it ran again."""
        return self.replay is not None and any(
            executed.statement is statement for executed in self.replay.makers(name)
        )

    def saw(self, statement: Statement, module: OwnModule) -> bool:
        """Return whether a statement ran while the extension was there."""
        label, name = statement.label, module.namespace.get("__name__")
        return self.watched and not {label, name} & self.observer.unseen

    def reads(self, statement: Statement, name: str, value: Any) -> Iterator[SeenRead]:
        """Yield the questions of a statement that matter to a name's value.

        Packages ask for many reasons, so what they made counts if it is a rank, a size or a name.
        """
        outside = self.only_used(statement, name, value)
        for site in self.sites(statement):
            for read in site.reads:
                label, _, line = read.where.rpartition(", line ")
                last = statement.node.end_lineno or statement.line
                inside = label == statement.label and statement.line <= int(line) <= last
                if outside and not inside:
                    continue
                if read.direct or _counts(value) or name in site.filled:
                    yield read

    def asked(self, statement: Statement) -> Iterator[SeenRead]:
        """Yield all that a statement asked."""
        for site in self.sites(statement):
            yield from site.reads

    def beside(self, statement: Statement) -> SeenRead | None:
        """Return what a thread asked beside the statement that had started it, or by luck within
        one that only starts it."""
        sites = [site for site in self.sites(statement) if site.beside or site.in_thread]
        if not sites:
            return None
        calls = (node.func for node in ast.walk(statement.node) if isinstance(node, ast.Call))
        methods = {method.attr for method in calls if isinstance(method, ast.Attribute)}
        starts = "start" in methods and methods.isdisjoint(("join", "result", "wait"))
        reads = (read for site in sites if site.beside or starts for read in site.reads)
        return next(reads, None)

    def only_used(self, statement: Statement, name: str, value: Any) -> bool:
        """Return whether a statement had a function do something with a model that left no answer
        in it: most often the function asked whether to print."""
        gives = not self.watched or name in statement.binds or self.fills(statement, name)
        return is_model(value) and not gives

    def fills(self, statement: Statement, name: str) -> bool:
        """Return whether the object of that name changed while the statement asked for the world,
        or read what knows it."""
        filled = any(name in site.filled for site in self.sites(statement))
        filled = filled or self.gives(statement, name)
        places = self.observer.originals.filled.get(name, ())
        return filled or any(is_at(place, statement) for place in places)

    def changed(self, statement: Statement, name: str) -> bool:
        """Return whether the statement changed a part of the object of that name, which it may have
        from the world: seen for what knows the world."""
        return any(is_at(change[:3], statement) for change in self.observer.changes.of(name))

    def replaced(self, name: str, executed: Iterable[Executed]) -> Executed | None:
        """Return the statement that bound a name, which knew the world, by a function that it
        calls."""
        place = self.observer.changes.replaced.get(name)
        return next((p for p in executed if is_at(place, p.statement)), None) if place else None

    def known_to(self, statement: Statement) -> set[str]:
        """Return the names that knew the world when a statement read them."""
        places, node = self.observer.readers(statement.label), statement.node
        return {n for place in places if _stands_in(Site(*place), node) for n in places[place]}

    def read_then(self, statement: Statement) -> dict[str, Callable[[object], bool]]:
        """Return the names that a statement read, also by functions, while it asked for the world
        or read what knows it; each with what tells if something is what the name stood for."""
        read = {n: same for site in self.sites(statement) for n, same in site.read.items()}
        return {name: read[name] for name in read.keys() - statement.binds}

    def before(self, statement: Statement, name: str) -> dict[str, str]:
        """Return the parts of a name's object before a statement that asked for the world."""
        return next((site.before.get(name, {}) for site in self.sites(statement)), {})

    def sets(self, statement: Statement) -> set[str]:
        """Return the variables of the environment that a statement set by more than a text."""
        return {name for site in self.sites(statement) for name in site.sets}

    def sites(self, statement: Statement) -> Iterator[Site]:
        """Yield the places in a statement from which something was asked."""
        every = self.observer.sites(statement.label)
        yield from (site for site in every if _stands_in(site, statement.node))


def is_at(place: tuple[str, int, int], statement: Statement) -> bool:
    """Return whether a place, a cell with a line and a column, is that of a statement."""
    label, line, column = place
    return label == statement.label and _stands_in(Site(line, column), statement.node)


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
    return bool(site.line < last or site.column < (node.end_col_offset or 0))
