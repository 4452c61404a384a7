"""What is set when a text has run: what definitions were given since, and the weights of models."""

from __future__ import annotations

from functools import cached_property
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.definitions import OF_CLASSES, is_definition, parts
from distrain_nb.program.gathering.expectation import asking
from distrain_nb.program.gathering.resolve import Needed, SourceCode, Value
from distrain_nb.program.values.pickling import try_value
from distrain_nb.worker.files.sizes import readable_size
from distrain_nb.worker.fingerprint import LIVE, dict_of
from distrain_nb.worker.rank.expected import shown
from distrain_nb.worker.rank.wrapped import unwrapped

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
    seen = world.seen.observer.originals.changed(name, definition)
    changes = _unseen(name, definition) if seen is None else seen
    asks = {*asking(needed, world)} if seen is None and changes else set()
    for path, (value, change) in changes.items():
        if path in asks or name in asks:
            continue
        trial = try_value(path, value, definitions, limit)
        if trial.problem is None and trial.complete:
            yield Needed(path, value, Value(), (where,), trial, name)
            continue
        part, before, after = change
        is_live = type(value).__module__.partition(".")[0] in LIVE
        if part and len(statements) == 1 and not is_live:
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


# -- weights of models that are made again ---------------------------------------------------------

_MOST_PARTS = 100


def weights_of(
    needed: Needed, where: str, definitions: Definitions, limit: int
) -> Iterator[Needed | Finding]:
    """Yield the weights of models that are made again, which travel; a finding for those that
    can't."""
    if isinstance(needed.value, (type, FunctionType)):
        return
    for path, name, weights in _weights_in(needed.name, needed.value):
        trial = try_value(name, weights, definitions, limit)
        if not trial.problem and trial.complete and trial.size <= limit:
            yield Needed(name, weights, Value(), (where,), trial, needed.name, path)
            continue
        size = readable_size(trial.size)
        why = trial.problem.reason if trial.problem else f"are larger than may travel ({size})"
        message = (
            f"the weights of `{path}` {why}: it is made again, and has those that its statements"
            " give. Load them in the cell"
        )
        yield Finding("capture.made-again", Severity.WARNING, where, message)


def _weights_in(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Models in an object: how the program writes them, how their weights, and the weights."""
    inside = [(name, value), *_parts(name, value)]
    for path, part in {id(part): (path, part) for path, part in reversed(inside)}.values():
        model, way = unwrapped(part), ""
        if hasattr(type(model), "load_state_dict") and hasattr(model, "named_parameters"):
            way = "state_dict"
        elif hasattr(type(model), "set_weights") and hasattr(model, "trainable_variables"):
            way = "get_weights"
        weights = getattr(model, way)() if way and not isinstance(model, type) else None
        if weights:
            yield path, f"{path}.{way}()", weights


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        yield from ((f"{name}[{n}]", part) for n, part in enumerate(value[:_MOST_PARTS]))
    elif isinstance(value, dict):
        yield from ((f"{name}[{k!r}]", v) for k, v in value.items() if isinstance(k, (str, int)))
    elif not (hasattr(type(value), "named_parameters") or isinstance(value, type)):
        inside = dict_of(value)
        yield from ((f"{name}.{key}", part) for key, part in inside.items() if key[:1] != "_")
