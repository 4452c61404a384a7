"""Numbers as JSON has them: neither NaN nor Infinity, as a page refuses an answer with those."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def or_none(value: float) -> float | None:
    """The number, or None for what is not finite: a gap in a line."""
    return value if math.isfinite(value) else None


def all_or_none(values: Iterable[float]) -> list[float | None]:
    """As `or_none`, for each."""
    return [value if math.isfinite(value) else None for value in values]


def in_words(value: float) -> float | str:
    """The number, or what one calls it: NaN, Infinity or -Infinity."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def without_nan(value: Any) -> Any:
    """A value of dicts, lists and tuples with None for every number that is not finite."""
    if isinstance(value, float):
        return or_none(value)
    if isinstance(value, dict):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return value


def to_json(value: Any) -> str:
    """What a page reads. Raises ValueError for a number that is not finite."""
    return json.dumps(value, allow_nan=False)
