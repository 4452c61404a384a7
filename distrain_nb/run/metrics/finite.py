"""Numbers as JSON has them: neither NaN nor Infinity, as a page refuses an answer with those."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from distrain_nb.types import Json, JsonObject


def or_none(value: float) -> float | None:
    """Return the number, or None for what is not finite: a gap in a line."""
    return value if math.isfinite(value) else None


def all_or_none(values: Iterable[float]) -> list[float | None]:
    """Apply `or_none` to each number."""
    return [value if math.isfinite(value) else None for value in values]


def in_words(value: float) -> float | str:
    """Return the number, or what one calls it: NaN, Infinity or -Infinity."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def without_nan(values: JsonObject) -> dict[str, Json]:
    """Return the values with None for every number that is not finite, however deep it stands."""
    return {name: _finite(value) for name, value in values.items()}


def _finite(value: Json) -> Json:
    if isinstance(value, float):
        return or_none(value)
    if isinstance(value, dict):
        return without_nan(value)
    return [_finite(member) for member in value] if isinstance(value, list | tuple) else value


def to_json(value: object) -> str:
    """Write a value as JSON for a page. Raises ValueError for a number that is not finite."""
    return json.dumps(value, allow_nan=False)
