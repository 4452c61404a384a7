"""Which names of a notebook have learned the world that the kernel lives in: a world of one.

Such an object must not travel as it is: the ranks would train as if each were alone. It is made
again in every rank from the statements that made it.
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.process import has_changed
from distrain_nb.program.notebook.history import LEFT_OUT, is_at
from distrain_nb.program.notebook.local_modules import OwnModule, OwnModules
from distrain_nb.program.notebook.making import Making, Makings
from distrain_nb.program.notebook.reach import (
    Name,
    Reaches,
    Reading,
    is_bound,
    keeps_state,
    name_of,
)
from distrain_nb.worker.fingerprint import dict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.program.notebook.history import (
        Executed,
        ExecutionHistory,
        SeenReads,
        Statement,
    )

_CODE = (type, FunctionType, BuiltinFunctionType, ModuleType)
_BLOCKS = (ast.For, ast.While, ast.With, ast.If, ast.Try)
_SCALARS = (bool, int, float, complex, str, bytes, type(None), Enum, PurePath)
_MOST_PARTS = 1000


@dataclass
class World:
    """Answers for one capture."""

    namespace: Mapping[str, Any]
    history: ExecutionHistory
    seen: SeenReads
    modules: OwnModules = field(init=False)  # beside the notebook
    _makings: dict[int, Makings] = field(default_factory=dict)
    _known: dict[Name, list[Reading]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._notebook = OwnModule(self.namespace, self.history)
        self.modules = OwnModules(self._notebook)
        self._reaches = Reaches(self.modules)
        self.makings = self._makings_of(self._notebook)

    @property
    def gone(self) -> set[str]:
        """Modules whose reading of the world can't be seen: their files are there no more."""
        return {module.partition(".")[0] for module in self.modules.gone}

    def learned(self, name: str) -> Reading | None:
        """Return the questions on which a notebook's name depends, also through its sources."""
        return self.asked_in(self._notebook, name)

    def asks_itself(self, executed: Executed) -> bool:
        """Return whether the user's own code asks for the world in a statement, not only a
        package."""
        if self.saw(executed.statement):
            return any(read.direct for read in self.seen.asked(executed.statement))
        return self.asked_by(executed) is not None

    def asks_for_rank(self, executed: Executed) -> bool:
        """Return whether a statement asks for the world, or reads what knows it."""
        reading = self.asked_by(executed)
        return reading is not None and reading.kind == "world"

    def asked_in(self, module: OwnModule, name: str) -> Reading | None:
        """Return the questions about the world or the machine on which a module's name depends."""
        return _first(self._asked([(module, name)]))

    def filling(self, module: OwnModule, name: str) -> list[Executed]:
        """Return the statements of a module's file, but definitions, that may fill a class."""
        every = (e for e in module.history.executed if name in e.statement.mentions())
        return [e for e in every if isinstance(e.statement.node, _BLOCKS) or not e.statement.binds]

    def asked_within(self, module: OwnModule, node: ast.AST) -> bool:
        """Return whether a part of a module's text, as of a class, asks for the world, or reads
        what knows it."""
        reach = self._reaches.within(node, module)
        known = _first(self._asked(reach.names | reach.inner))
        return bool(reach.knows or reach.asks or (known and known.kind == "world"))

    def asked_by(self, executed: Executed) -> Reading | None:
        """Return the questions about the world or the machine of a notebook's statement, its own or
        by names that it reads."""
        statement = executed.statement
        for read in self.seen.asked(statement):
            return Reading("world", read.what, read.where)
        for reading in self._of_text(statement, self._notebook):
            return reading
        reach = self._reaches.of(statement, self._notebook)
        as_read = (
            name
            for name in (*reach.names, *reach.inner)
            if name[0] is not self._notebook or not self.is_later(name[1], executed)
        )
        known = _first(self._asked(as_read))
        gone = self.gone_since(executed)
        if statement.text.startswith(LEFT_OUT):  # whose names only IPython knows
            gone = gone or self.seen.known_to(statement)
        if gone and (known is None or known.kind != "world"):
            return Reading("world", min(gone), statement.where)
        return known

    def gone_since(self, executed: Executed) -> set[str]:
        """Return the names that knew the world when a statement read them, and that stand for
        something else since."""
        read = self.seen.known_to(executed.statement)
        return {name for name in read if self.is_later(name, executed)}

    def changed_variables(self, statement: Statement) -> set[str]:
        """Return the variables of the environment that a statement read, and that have changed
        since: the machine would give it something else."""
        reads = self.seen.observer.variables.of.get(statement.label, ())
        return {name for r in reads if is_at(r[:3], statement) for name in has_changed(r)}

    def is_later(self, name: str, executed: Executed) -> bool:
        """Return whether a name was set, or deleted, after a statement ran."""
        latest = next(iter(self.history.of(name)), None)
        return name not in self.namespace or (latest is not None and latest.at > executed.at)

    def reads(self, executed: Executed, name: str) -> bool:
        """Return whether a statement, or code that it calls, reads a name of the notebook."""
        reach = self._reaches.of(executed.statement, self._notebook)
        return (self._notebook, name) in {**reach.names, **reach.inner}

    def reads_modules(self, node: ast.AST) -> bool:
        """Return whether an expression, or code that it calls, reads a module beside the
        notebook."""
        reach = self._reaches.within(node, self._notebook)
        return any(module is not self._notebook for module, _ in {**reach.names, **reach.inner})

    def read_inside(self, executed: Executed) -> set[str]:
        """Return the names of the notebook that functions read which a statement calls."""
        reach = self._reaches.of(executed.statement, self._notebook)
        return {name for module, name in reach.inner if module is self._notebook}

    def worked_on(self, name: str, making: Making) -> Executed | None:
        """Return the statement that has changed it by work since, so that a new one is not the
        same."""
        value = self.namespace.get(name)
        if is_settings(value) or not keeps_state(value):
            return None
        return self.makings.worked_on(name, making)

    def saw(self, statement: Statement) -> bool:
        """Return whether a statement of the notebook ran while the extension was there."""
        return self.seen.saw(statement, self._notebook)

    def begins_group(self, name: str) -> bool:
        """Return whether making it again, with all that it is made from, also makes its process
        group."""
        return any(
            "init_process_group" in self._reaches.of(executed.statement, module).attributes
            for module, item, _ in self._behind([(self._notebook, name)])
            for executed in self._chain(module, item)
        )

    def made_of(self, name: str) -> Iterator[Executed]:
        """Yield the statements that made a name of the notebook, and what it is made of."""
        for module, item, _ in self._behind([(self._notebook, name)]):
            yield from self._chain(module, item)

    def _behind(self, names: Iterable[Name]) -> Iterator[tuple[OwnModule, str, bool]]:
        """Yield names, and those that they were made from, and whether all on the way is
        settings."""
        waiting = deque((module, name, True) for module, name in names)
        visited: set[Name] = set()
        while waiting:
            module, name, plain = waiting.popleft()
            if (module, name) in visited:
                continue
            visited.add((module, name))
            value = module.namespace.get(name)
            making = self._makings_of(module).of(name)
            plain = plain and is_settings(value) and not (making and making.result)
            yield module, name, plain
            if is_bound(value):
                continue
            for executed in self._chain(module, name):
                reach = self._reaches.of(executed.statement, module)
                used = self.seen.only_used(executed.statement, name, value)
                following = reach.names | (reach.passed if plain else {})
                following |= {} if used else reach.inner
                waiting.extend((*item, plain) for item in following)

    def _asked(self, names: Iterable[Name]) -> Iterator[Reading]:
        """Yield the questions on the way to values; those about the machine only where all there
        is settings."""
        for module, name, plain in self._behind(names):
            if (module, name) not in self._known:
                self._known[module, name] = [*self._readings(module, name)]
            yield from (r for r in self._known[module, name] if plain or r.kind == "world")

    def _readings(self, module: OwnModule, name: str) -> Iterator[Reading]:
        value, chain = module.namespace.get(name), self._chain(module, name)
        makings = self._makings_of(module)
        if is_bound(value):
            where = chain[0].statement.where if chain else ""
            yield Reading("world", type(value).__name__, where)
            return
        for executed in chain:
            statement = executed.statement
            for read in self.seen.reads(statement, name, value):
                yield Reading("world", read.what, read.where)
            known = self.seen.known_to(statement) - statement.binds
            names_known = [
                n for n in known if self.is_later(n, executed) or self.reads(executed, n)
            ]
            used = self.seen.only_used(statement, name, value)
            if names_known and not (used and not makings.stores(statement, name)):
                yield Reading("world", min(names_known), statement.where)
        # Nobody sees what a pool's processes ask; their plain results may hold it.
        if self.seen.observer.has_pools and is_settings(value):
            for statement in (executed.statement for executed in chain):
                for what in self._reaches.of(statement, module).passed_asks:
                    yield Reading("world", what, statement.where)
        is_own_code = isinstance(value, _CODE) and module is self._notebook
        for executed in () if is_own_code else chain:
            yield from self._of_text(executed.statement, module)
        if module is self._notebook and (knows := self.seen.knows(name)):
            yield Reading("world", f"`{knows[0]}`", knows[1].statement.where)

    def _of_text(self, statement: Statement, module: OwnModule) -> Iterator[Reading]:
        """Yield what the text of a statement takes from packages, and its questions if nobody saw
        them."""
        reach = self._reaches.of(statement, module)
        known = [reach.knows] if reach.knows else []
        asked = [] if self.seen.saw(statement, module) else reach.asks
        yield from (Reading("world", what, statement.where) for what in (*known, *asked))
        # What a loop has measured isn't measured again for another machine.
        if reach.machine and not isinstance(statement.node, (ast.For, ast.AsyncFor, ast.While)):
            yield Reading("device", f"{reach.machine}()", statement.where)

    def _chain(self, module: OwnModule, name: str) -> tuple[Executed, ...]:
        """Return the statements that made a name; of a class also those that filled it since."""
        if isinstance(module.namespace.get(name), _CODE):
            defined = module.history.of(name)[:1]
            if defined and module is self._notebook:
                return tuple(self.makings.fillings(name, defined[0]))
            return (*defined, *self.filling(module, name))
        making = self._makings_of(module).of(name)
        return making.chain if making else ()

    def _makings_of(self, module: OwnModule) -> Makings:
        if id(module) not in self._makings:
            self._makings[id(module)] = Makings(module, self._reaches, self.seen)
        return self._makings[id(module)]


def _first(readings: Iterable[Reading]) -> Reading | None:
    """Return the first reading of the world, or else of the machine."""
    every = list(readings)
    return next((r for r in every if r.kind == "world"), next(iter(every), None))


_HOLDERS: tuple[Any, ...] = (dict, list, tuple, set, frozenset)


def is_settings(value: Any) -> bool:
    """Return whether a value is made of numbers, texts and devices alone: arguments, a
    configuration."""
    waiting, parts = [value], 0
    made_in_python = 1 << 9  # Py_TPFLAGS_HEAPTYPE: of such classes attributes are all there is
    while waiting:
        part = waiting.pop()
        bases = type(part).__mro__[:-1] if type(part) is not SimpleNamespace else ()
        parts += 1
        if parts > _MOST_PARTS:
            return False
        if isinstance(part, _SCALARS) or name_of(type(part)) in ("torch.device", "torch.dtype"):
            continue
        kind = next((k for k in _HOLDERS if issubclass(type(part), k)), None)
        if kind is dict:
            waiting += [*dict.keys(part), *dict.values(part)]
        elif kind:  # past its class's own way to iterate
            waiting += [*kind.__iter__(part)]
        elif not isinstance(part, _CODE) and all(c.__flags__ & made_in_python for c in bases):
            waiting += dict_of(part).values()
        else:
            return False
    return True
