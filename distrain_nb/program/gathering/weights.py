"""The weights of models that are made again, which travel."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Severity
from distrain_nb.program.gathering.resolve import Needed, Value
from distrain_nb.program.values.pickling import try_value
from distrain_nb.worker.files.disk import readable_size
from distrain_nb.worker.fingerprint import dict_of
from distrain_nb.worker.rank.wrapped import unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.values.pickling import Definitions

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
    inside = [(name, value)]
    if isinstance(value, (list, tuple)):
        inside += [(f"{name}[{n}]", part) for n, part in enumerate(value[:_MOST_PARTS])]
    elif isinstance(value, dict):
        inside += [(f"{name}[{k!r}]", v) for k, v in value.items() if isinstance(k, (str, int))]
    elif not (hasattr(type(value), "named_parameters") or isinstance(value, type)):
        attributes = dict_of(value).items()
        inside += [(f"{name}.{key}", part) for key, part in attributes if key[:1] != "_"]
    for path, part in {id(part): (path, part) for path, part in reversed(inside)}.values():
        model, way = unwrapped(part), ""
        if hasattr(type(model), "load_state_dict") and hasattr(model, "named_parameters"):
            way = "state_dict"
        elif hasattr(type(model), "set_weights") and hasattr(model, "trainable_variables"):
            way = "get_weights"
        weights = getattr(model, way)() if way and not isinstance(model, type) else None
        if weights:
            yield path, f"{path}.{way}()", weights
