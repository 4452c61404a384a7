"""What definitions have been given since their text: it travels, and is set when that has run."""

from __future__ import annotations

from functools import cached_property
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.definitions import OF_CLASSES, is_definition, parts
from distrain_nb.program.gathering.expectation import asking
from distrain_nb.program.gathering.needed import Needed
from distrain_nb.program.gathering.resolve import SourceCode, Value
from distrain_nb.program.values.pickling import try_value
from distrain_nb.worker.fingerprint import LIVE
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.notebook.world import World
    from distrain_nb.program.values.pickling import Definitions

_METHODS = (FunctionType, BuiltinFunctionType, staticmethod, classmethod, property, cached_property)


def state_of(
    needed: Needed, where: str, world: World, definitions: Definitions, limit: int
) -> Iterator[Needed | Finding]:
    """Yield the attributes of a definition that its text doesn't give; a finding for those that
    can't travel. Where nobody saw its statement all that are no methods: a rank keeps what is
    equal."""
    assert isinstance(needed.how, SourceCode)
    name, definition = needed.name, needed.value
    statements = [executed.statement for executed in needed.how.chain]
    if not is_definition(definition):
        return
    seen = world.seen.changed_parts(name, definition)
    changes = _unseen(name, definition) if seen is None else seen
    asks = {*asking(needed, world)} if seen is None and changes else set()
    for path, (value, change) in changes.items():
        if path in asks or name in asks:
            continue
        trial = try_value(path, value, definitions, limit)
        if trial.problem is None and trial.complete:
            yield Needed(path, value, Value(value), (where,), trial, name)
        elif (
            seen is not None
            and len(statements) == 1
            and type(value).__module__.partition(".")[0] not in LIVE
        ):
            part, before, after = change
            why = trial.problem.reason if trial.problem else "is too large to travel"
            message = (
                f"`{part}` is {shown(after)} in the notebook ({statements[0].where}) and"
                f" {shown(before)} in the run, which makes `{name}` again from its text: `{path}`"
                f" {why}. Set it in the cell"
            )
            yield Finding("capture.not-portable", Severity.ERROR, where, message)


def _unseen(name: str, definition: Any) -> dict[str, tuple[Any, tuple[str, str, str]]]:
    values = parts(name, definition)
    plain = ((p, v) for p, v in values if not isinstance(v, _METHODS))
    return {p: (v, ("", "", "")) for p, v in plain if p.rpartition(".")[2] not in OF_CLASSES}
