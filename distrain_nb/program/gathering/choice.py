"""Whether a definition travels as its text or, where that may give something else, as a value."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Severity
from distrain_nb.program.gathering.faithful import has_lost_bases, makes_the_same
from distrain_nb.program.gathering.remake import asks_machine, with_fillings
from distrain_nb.program.gathering.resolve import (
    Literal,
    NoSource,
    SourceCode,
    Value,
    by_statement,
    resolve,
)
from distrain_nb.program.values.origins import FunctionTexts
from distrain_nb.program.values.pickling import Definitions, try_value

if TYPE_CHECKING:
    from distrain_nb.program.gathering.resolve import How
    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import ExecutionHistory
    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import PickleTrial

_Chosen = tuple["How", "PickleTrial | None"]


class Choices:
    """How the names of a notebook travel, each looked at once."""

    def __init__(
        self, notebook: Notebook, history: ExecutionHistory, world: World, limit: int
    ) -> None:
        self.history, self.world, self.limit = history, world, limit
        origins = FunctionTexts(notebook.cells)
        self.definitions = Definitions(notebook.namespace, origins, self._is_text)
        self._chosen: dict[str, _Chosen] = {}

    def of(self, name: str) -> _Chosen:
        """Return how a name travels; with the trial of a value that stands for its text."""
        if name not in self._chosen:
            value = self.definitions.namespace[name]
            how = resolve(name, value, self.history, self.definitions)
            self._choose_bases(value)
            self._chosen[name] = Value(value), None  # as others see it meanwhile
            self._chosen[name] = self._with_state(name, value, how)
        return self._chosen[name]

    def _choose_bases(self, value: Any) -> None:
        """Choose for the bases of a class, the first one first: a class asks for its own bases, and
        a hundred of them, one of the other, would be beyond Python's recursion limit."""
        for base in reversed(value.__mro__[1:] if isinstance(value, type) else ()):
            if self.definitions.namespace.get(base.__name__) is base:
                self.of(base.__name__)

    def text_of(self, name: str) -> SourceCode | None:
        """Return the statements that give a name, whatever has changed since."""
        how = resolve(name, self.definitions.namespace[name], self.history, self.definitions)
        return how if isinstance(how, SourceCode) else by_statement(name, self.history)

    def _is_text(self, name: str) -> bool:
        return not isinstance(self.of(name)[0], (Literal, Value))

    def _with_state(self, name: str, value: Any, how: How) -> _Chosen:
        owned = isinstance(value, (type, FunctionType)) and self.definitions.owns(value)
        if isinstance(how, SourceCode):
            filled = with_fillings(name, how, self.world)
            if not owned or filled.world or self._keeps_text(how, value):
                return filled, None
        elif not owned or not isinstance(how, NoSource):
            return how, None
        trial = try_value(name, value, self.definitions, self.limit)
        return (how, None) if trial.problem or not trial.complete else (Value(value), trial)

    def _keeps_text(self, how: SourceCode, value: Any) -> bool:
        """Return whether the text is sure to be right, or nothing else will do."""
        if isinstance(value, type) and has_lost_bases(value, self.definitions):
            return False
        asks = any(self.world.asked_by(e) or asks_machine(e.statement.node) for e in how.chain)
        notes = (note for executed in how.chain for note in executed.statement.notes)
        refused = any(note.severity is Severity.ERROR for note in notes)
        return asks or refused or makes_the_same(how.chain, value, self.definitions)
