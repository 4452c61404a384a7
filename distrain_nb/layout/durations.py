"""Durations, as a user writes them."""

from __future__ import annotations

import re

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"\d{1,9}|(?:\d{1,9}[dhms])+")


def seconds(text: str) -> int:
    """Return seconds of `7d`, `1h30m`, `90s` or a bare number. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    return sum(int(n) * _UNITS[unit or "s"] for n, unit in re.findall(r"(\d+)([dhms]?)", text))


def duration(value: int) -> str:
    """Return the shortest text that `seconds` reads as *value*."""
    for unit, size in _UNITS.items():
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
