"""Which settings of the process the notebook has made: how they were at first, and what changed
them while the world was asked."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.frames import run_by
from distrain_nb.worker.rank.process_state import FIRST, TABLE, is_of_package, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import CodeType

_FILTERS, _LOGGERS = "warnings:filters", "logging:getLogger()"  # which imports change
_SET_FILTERS = {"filterwarnings", "simplefilter", "resetwarnings", "filters"}


class Settings:
    """The settings of a notebook's process."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self._first: dict[str, Any] = {}
        self._before: dict[str, Any] | None = None
        self._of_world: dict[str, tuple[Any, tuple[str, int, int]]] = {}
        self._filters, self._sets_filters = [*warnings.filters], False
        self._own_filters: list[Any] = []
        self._imported()

    def keep(self) -> None:
        """The running statement asks for the world, or reads what knows it."""
        if self._before is None:
            self._before = dict(read())

    def look(self, code: CodeType, at: tuple[str, int, int]) -> None:
        """A statement has run at that place."""
        before, self._before = self._before, None
        imports = len(sys.modules) != self._modules
        if warnings.filters != self._filters:
            before_filters, self._filters = self._filters, [*warnings.filters]
            if not imports or self._names_setters(code):
                self._sets_filters = True
                self._own_filters += [f for f in self._filters if f not in before_filters]
        if imports:
            self._imported()
        if before is not None:
            now = dict(read())
            changed = {n: (now[n], at) for n in before if now.get(n) != before[n]}
            self._of_world.update(changed)

    def _names_setters(self, code: CodeType) -> bool:
        run = run_by(code, self.namespace)
        return any(not _SET_FILTERS.isdisjoint(inner.co_names) for inner, _ in run)

    def _imported(self) -> None:
        """Keep how the settings of new modules are, and their loggers."""
        self._modules = len(sys.modules)
        others = {name for name, state in TABLE.items() if state.usual is not FIRST}
        for name, value in read(but={*others, *self._first.keys() - {_LOGGERS}}):
            before = self._first.get(name, {}) if name == _LOGGERS else {}
            self._first[name] = {**value, **before} if before else value

    def changed(self) -> Iterator[tuple[str, Any, tuple[str, int, int] | None]]:
        """Yield the settings that the notebook has made, by their names in the table, with their
        values, and the place of the statement that made one while it asked for the world."""
        for name, value in read(but=() if self._sets_filters else {_FILTERS}):
            if name == _FILTERS:  # packages make theirs when a rank imports them
                own = self._own_filters
                value = [f for f in value if f in own or not is_of_package(f[2])]
            different = TABLE[name].differs(value, self._first.get(name, value))
            if different is not None:
                of_world, at = self._of_world.get(name, (None, None))
                yield name, different, at if value == of_world else None
