"""What the names of a notebook, and of the modules beside it, are made of.

A name is made by statements. These read other names, or call code that reads them.
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from distrain_nb.program.notebook.making import Making, Makings
from distrain_nb.program.notebook.process_objects import is_bound, keeps_state, name_of
from distrain_nb.program.notebook.reach import Name, Reaches
from distrain_nb.worker.fingerprint import dict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.notebook.local_modules import OwnModule
    from distrain_nb.program.notebook.seen_reads import SeenReads

CODE = (type, FunctionType, BuiltinFunctionType, ModuleType)
_BLOCKS = (ast.For, ast.While, ast.With, ast.If, ast.Try)
_SCALARS = (bool, int, float, complex, str, bytes, type(None), Enum, PurePath)
_MOST_PARTS = 1000
_HOLDERS: tuple[Any, ...] = (dict, list, tuple, set, frozenset)


@dataclass
class Ancestry:
    """Answers for one capture."""

    notebook: OwnModule
    reaches: Reaches
    seen: SeenReads
    _makings: dict[int, Makings] = field(default_factory=dict)

    def makings(self, module: OwnModule) -> Makings:
        """Return how the names of a module were made."""
        if id(module) not in self._makings:
            self._makings[id(module)] = Makings(module, self.reaches, self.seen)
        return self._makings[id(module)]

    def makers(self, module: OwnModule, name: str) -> tuple[Executed, ...]:
        """Return the statements that made a name; of a class also those that filled it since."""
        if isinstance(module.namespace.get(name), CODE):
            defined = module.history.of(name)[:1]
            if defined and module is self.notebook:
                return tuple(self.makings(module).fillings(name, defined[0]))
            return (*defined, *self.filling(module, name))
        making = self.makings(module).of(name)
        return making.chain if making else ()

    def filling(self, module: OwnModule, name: str) -> list[Executed]:
        """Return the statements of a module's file, but definitions, that may fill a class."""
        every = (e for e in module.history.executed if name in e.statement.mentions())
        return [e for e in every if isinstance(e.statement.node, _BLOCKS) or not e.statement.binds]

    def behind(self, names: Iterable[Name]) -> Iterator[tuple[OwnModule, str, bool]]:
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
            making = self.makings(module).of(name)
            plain = plain and is_settings(value) and not (making and making.result)
            yield module, name, plain
            if is_bound(value):
                continue
            for executed in self.makers(module, name):
                reach = self.reaches.of(executed.statement, module)
                used = self.seen.only_used(executed.statement, name, value)
                following = reach.names | (reach.passed if plain else {})
                following |= {} if used else reach.inner
                waiting.extend((*item, plain) for item in following)

    def all_makers(self, name: str) -> Iterator[Executed]:
        """Yield the statements that made a name of the notebook, and what it is made of."""
        for module, item, _ in self.behind([(self.notebook, name)]):
            yield from self.makers(module, item)

    def begins_group(self, name: str) -> bool:
        """Return whether making a name again, with all that it is made from, also makes its
        process group."""
        return any(
            "init_process_group" in self.reaches.of(executed.statement, module).attributes
            for module, item, _ in self.behind([(self.notebook, name)])
            for executed in self.makers(module, item)
        )

    def worked_on(self, name: str, making: Making) -> Executed | None:
        """Return the statement that has changed a name's object by work since, so that a new one is
        not the same."""
        value = self.notebook.namespace.get(name)
        if is_settings(value) or not keeps_state(value):
            return None
        return self.makings(self.notebook).worked_on(name, making)


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
        elif not isinstance(part, CODE) and all(c.__flags__ & made_in_python for c in bases):
            waiting += dict_of(part).values()
        else:
            return False
    return True
