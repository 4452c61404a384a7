"""Ranges and ticks of a linear axis, chosen and written as plotly does, so that a drawing has those
of the live chart (plotly.js 3: `autorange.js`, `autoTicks` and `numFormat` in `axes.js`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.run.charts.lines import ChartLine
from distrain_nb.run.metrics.events import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    Lines = Mapping[Key, ChartLine]

    Range = tuple[float, float]

MINUS = "\N{MINUS SIGN}"
_PADDED = 0.05  # of the axis, on both sides
_MARKER_PX = 3.125  # what plotly adds for markers of 5 px
_STEPS = (2, 5, 10)
_PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "μ", -3: "m", 3: "k", 6: "M", 9: "B", 12: "T"}


@dataclass(frozen=True)
class Axis:
    """The style of ticks: `most` of them, powers of ten written as `k` and `M` or as `e+3` where
    the largest number is beyond ten to the power `plain` or its inverse."""

    most: int
    plain: int
    prefixes: bool


X_AXIS, Y_AXIS = Axis(6, 3, True), Axis(5, 4, False)


def padded(low: float, high: float, length: float, markers: bool) -> tuple[float, float]:
    """Return the range of an axis of `length` pixels that shows these values with room on both
    sides."""
    if low == high:
        return low - 1, high + 1
    room = length * _PADDED + (_MARKER_PX if markers else 0)
    a_pixel = (high - low) / (length - 2 * room)
    return low - a_pixel * room, high + a_pixel * room


def ticks(axis: Axis, low: float, high: float) -> list[tuple[float, str]]:
    """Return the ticks of a range: where they are, and what is written there."""
    rough = (high - low) / axis.most
    if not (math.isfinite(rough) and rough > 0):
        return []
    base = 10.0 ** math.floor(math.log10(rough))
    step = base * next(s for s in _STEPS if rough / base <= s or s == _STEPS[-1])
    digits = 2 - math.floor(math.log10(step) + 0.01)
    exponent = _exponent(axis, max(abs(low), abs(high)))
    room = (high - low) * 1e-4
    first, last = math.ceil((low - room) / step), math.floor((high + room) / step)
    return [(n * step, _written(n * step, digits, exponent, axis)) for n in range(first, last + 1)]


def _exponent(axis: Axis, largest: float) -> int:
    """Return the power of ten that is taken out of all ticks."""
    power = math.floor(math.log10(largest) + 0.01)
    if abs(power) <= axis.plain:
        return 0
    if axis.prefixes and -16 < power < 15:
        return 3 * math.floor((power - 1) / 3 + 0.5)
    return power


def _written(value: float, digits: int, exponent: int, axis: Axis) -> str:
    if abs(value) < 10.0**-digits / 2:
        return "0"
    text = f"{abs(value) * 10.0**-exponent:.{max(0, digits + exponent)}f}"
    integer, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    if decimals or len(integer) > 4:
        integer = f"{int(integer):,}"
    sign = MINUS if value < 0 else ""
    return f"{sign}{integer}{'.' if decimals else ''}{decimals}{_power(exponent, axis.prefixes)}"


def _power(exponent: int, prefixes: bool) -> str:
    if not exponent:
        return ""
    if prefixes and exponent in _PREFIXES:
        return _PREFIXES[exponent]
    return f"e{MINUS if exponent < 0 else '+'}{abs(exponent)}"
