"""The weights of models that are made again: they travel, and are loaded into the new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.worker.fingerprint import dict_of
from distrain_nb.worker.rank.wrapped import unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PARTS = 100


def weights_in(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Models in an object: how the program writes them, how their weights, and the weights."""
    parts = [(name, value), *_parts(name, value)]
    for path, part in {id(part): (path, part) for path, part in reversed(parts)}.values():
        model = unwrapped(part)
        if isinstance(model, type):
            continue
        if hasattr(type(model), "load_state_dict") and hasattr(model, "named_parameters"):
            state = model.state_dict()
            if state:
                yield path, f"{path}.state_dict()", state
        elif hasattr(type(model), "set_weights") and hasattr(model, "trainable_variables"):
            state = model.get_weights()
            if state:
                yield path, f"{path}.get_weights()", state


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        yield from ((f"{name}[{n}]", part) for n, part in enumerate(value[:_MOST_PARTS]))
    elif isinstance(value, dict):
        yield from ((f"{name}[{k!r}]", v) for k, v in value.items() if isinstance(k, (str, int)))
    elif not (hasattr(type(value), "named_parameters") or isinstance(value, type)):
        inside = dict_of(value)
        yield from ((f"{name}.{key}", part) for key, part in inside.items() if key[:1] != "_")
