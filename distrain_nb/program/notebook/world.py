"""Which names of a notebook have learned the world that the kernel lives in: a world of one.

Such an object must not travel as it is: the ranks would train as if each were alone. It is made
again in every rank from the statements that made it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.process import has_changed
from distrain_nb.program.notebook.ancestry import CODE, Ancestry, is_settings
from distrain_nb.program.notebook.history import LEFT_OUT
from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.making import Makings
from distrain_nb.program.notebook.package_objects import PackageObjects
from distrain_nb.program.notebook.process_objects import is_bound
from distrain_nb.program.notebook.reach import Dependence, Name, Reaches
from distrain_nb.program.notebook.seen_reads import is_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import Executed, ExecutionHistory, Statement
    from distrain_nb.program.notebook.seen_reads import SeenReads


@dataclass
class World:
    """Answers for one capture: which question about the world, or the machine, a name, a statement
    or a part of a text depends on."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory
    seen: SeenReads
    modules: OwnModules = field(init=False)  # beside the notebook
    packages: PackageObjects = field(default_factory=PackageObjects)
    _known: dict[Name, list[Dependence]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._notebook = OwnModule(self.namespace, self.history)
        self.modules = OwnModules(self._notebook, self.seen.observer.modules.imported.edited())
        self.reaches = Reaches(self.modules)
        self.ancestry = Ancestry(self._notebook, self.reaches, self.seen)

    @property
    def makings(self) -> Makings:
        """How the names of the notebook were made."""
        return self.ancestry.makings(self._notebook)

    # -- questions ----------------------------------------------------------------------------

    def dependence(self, name: str, module: OwnModule | None = None) -> Dependence | None:
        """Return the question on which a name of the notebook, or of a module, depends: its maker's
        own, or that of a name which it was made from."""
        return _first(self._questions([(module or self._notebook, name)]))

    def dependence_of(self, executed: Executed) -> Dependence | None:
        """Return the question of a notebook's statement, its own or by names that it reads."""
        statement = executed.statement
        for read in self.seen.asked(statement):
            return Dependence("world", read.what, read.where)
        for question in self._of_text(statement, self._notebook):
            return question
        reach = self.reaches.of(statement, self._notebook)
        as_read = (
            name
            for name in (*reach.names, *reach.inner)
            if name[0] is not self._notebook or not self._is_later(name[1], executed)
        )
        behind = _first(self._questions(as_read))
        gone = self.rebound_since(executed)
        if statement.text.startswith(LEFT_OUT):  # whose names only IPython knows
            gone = gone or self.seen.known_to(statement)
        if gone and (behind is None or behind.kind != "world"):
            return Dependence("world", min(gone), statement.where)
        return behind

    def knows_world(self, executed: Executed) -> bool:
        """Return whether a statement asks for the world, or reads what knows it."""
        question = self.dependence_of(executed)
        return question is not None and question.kind == "world"

    def part_knows_world(self, node: ast.AST, module: OwnModule) -> bool:
        """Return whether a part of a module's text, as of a class, asks for the world, or reads
        what knows it."""
        reach = self.reaches.within(node, module)
        behind = _first(self._questions(reach.names | reach.inner))
        return bool(reach.knows or reach.asks or (behind and behind.kind == "world"))

    def asks_directly(self, executed: Executed) -> bool:
        """Return whether the user's own code asks for the world in a statement, not only a
        package."""
        if self.saw(executed.statement):
            return any(read.direct for read in self.seen.asked(executed.statement))
        return self.dependence_of(executed) is not None

    def saw(self, statement: Statement) -> bool:
        """Return whether a statement of the notebook ran while the extension was there."""
        return self.seen.saw(statement, self._notebook)

    # -- what has changed since -----------------------------------------------------------------

    def rebound_since(self, executed: Executed) -> set[str]:
        """Return the names that knew the world when a statement read them, and that stand for
        something else since."""
        read = self.seen.known_to(executed.statement)
        return {name for name in read if self._is_later(name, executed)}

    def changed_variables(self, statement: Statement) -> set[str]:
        """Return the variables of the environment that a statement read, and that have changed
        since: the machine would give it something else."""
        reads = self.seen.observer.variables.of.get(statement.label, ())
        return {name for r in reads if is_at(r[:3], statement) for name in has_changed(r)}

    def _is_later(self, name: str, executed: Executed) -> bool:
        """Return whether a name was set to something else, or deleted, after a statement ran."""
        latest = next(iter(self.history.of(name)), None)
        if name not in self.namespace or latest is None or latest.at <= executed.at:
            return name not in self.namespace
        before = self.history.of(name, executed.at)[:1] if latest.statement.is_import else []
        gave = [e.statement.gives(name) for e in before]
        return gave != [latest.statement.gives(name)]

    # -- all questions on the way ---------------------------------------------------------------

    def _questions(self, names: Iterable[Name]) -> Iterator[Dependence]:
        """Yield the questions on the way to values; those about the machine only where all there
        is settings."""
        for module, name, plain in self.ancestry.behind(names):
            if (module, name) not in self._known:
                self._known[module, name] = [*self._of_name(module, name)]
            yield from (q for q in self._known[module, name] if plain or q.kind == "world")

    def _of_name(self, module: OwnModule, name: str) -> Iterator[Dependence]:
        """Yield the questions of the statements that made a name."""
        value, makers = module.namespace.get(name), self.ancestry.makers(module, name)
        if is_bound(value):
            where = makers[0].statement.where if makers else ""
            yield Dependence("world", type(value).__name__, where)
            return
        for executed in makers:
            yield from self._seen_of(executed, module, name)
        # Nobody sees what a pool's processes ask; their plain results may hold it.
        if self.seen.observer.has_pools and is_settings(value):
            for statement in (executed.statement for executed in makers):
                for what in self.reaches.of(statement, module).passed_asks:
                    yield Dependence("world", what, statement.where)
        is_own_code = isinstance(value, CODE) and module is self._notebook
        for executed in () if is_own_code else makers:
            yield from self._of_text(executed.statement, module)
        if module is self._notebook and (knows := self.seen.knows(name)):
            yield Dependence("world", f"`{knows[0]}`", knows[1].statement.where)

    def _seen_of(self, executed: Executed, module: OwnModule, name: str) -> Iterator[Dependence]:
        """Yield what a statement was seen to ask that matters to a name which it made."""
        statement, value = executed.statement, module.namespace.get(name)
        for read in self.seen.reads(statement, name, value):
            yield Dependence("world", read.what, read.where)
        known = self.seen.known_to(statement) - statement.binds
        names_known = [
            n
            for n in known
            if self._is_later(n, executed) or self.reaches.reads(executed.statement, n)
        ]
        used = self.seen.only_used(statement, name, value)
        if names_known and not (used and not self.ancestry.makings(module).stores(statement, name)):
            yield Dependence("world", min(names_known), statement.where)

    def _of_text(self, statement: Statement, module: OwnModule) -> Iterator[Dependence]:
        """Yield what the text of a statement takes from packages, and its questions if nobody saw
        them."""
        reach = self.reaches.of(statement, module)
        known = [reach.knows] if reach.knows else []
        asked = [] if self.seen.saw(statement, module) else reach.asks
        yield from (Dependence("world", what, statement.where) for what in (*known, *asked))
        # What a loop has measured isn't measured again for another machine.
        if reach.machine and not isinstance(statement.node, (ast.For, ast.AsyncFor, ast.While)):
            yield Dependence("device", f"{reach.machine}()", statement.where)


def _first(questions: Iterable[Dependence]) -> Dependence | None:
    """Return the first question about the world, or else about the machine."""
    every = list(questions)
    return next((q for q in every if q.kind == "world"), next(iter(every), None))
