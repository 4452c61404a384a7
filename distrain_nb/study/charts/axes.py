"""Axes of parameters and goals: the positions of values, and the texts of ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from distrain_nb.run.charts.ticks import MINUS, Axis, ticks
from distrain_nb.study.summary import value_text
from distrain_nb.tuning.spec import Categorical, Discrete, Double, Integer, same_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from distrain_nb.tuning.spec import Parameter, StudySpec, Value

Kind: TypeAlias = Literal["linear", "log", "reverse-log", "listed"]

ROOM = 0.04  # of an axis, beyond its first and last number
LOG_FROM = 100  # the least ratio of a goal's largest to its smallest value, for a logarithmic axis
MOST_DECADES = 6
_PLAIN_FROM, _PLAIN_TO = -3, 4  # powers of ten that are written as numbers
_TICKS = Axis(5, 4, False)


@dataclass(frozen=True)
class ValueAxis:
    """An axis from `low` to `high` on a scale, or of `listed` values at equal distances."""

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 1.0
    values: tuple[Value, ...] = ()

    def share(self, value: Value | None) -> float | None:
        """Return the position of a value along the axis, from 0 to 1; None if it has none."""
        if self.kind == "listed":
            index = next((n for n, item in enumerate(self.values) if _alike(item, value)), None)
            return None if index is None else (index + 0.5) / len(self.values)
        if value is None or isinstance(value, str) or not math.isfinite(value):
            return None
        along = self._along(value)
        return None if along is None else ROOM + (1 - 2 * ROOM) * along

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `share` of each number, for a linear or logarithmic axis; NaN for those without
        one."""
        with np.errstate(all="ignore"):
            if self.high <= self.low:
                along = np.where(np.isfinite(values), 0.5, np.nan)
            elif self.kind == "log":
                along = np.log(values / self.low) / math.log(self.high / self.low)
            else:
                along = (values - self.low) / (self.high - self.low)
        return np.where(np.isfinite(along), ROOM + (1 - 2 * ROOM) * along, np.nan)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions and texts of its ticks."""
        if self.kind == "listed":
            values = [(value, value_text(value)) for value in self.values]
        elif self.kind == "linear":
            values = list(ticks(_TICKS, self.low, self.high))
        else:
            values = [(value, power(value)) for value in _decades(self.low, self.high)]
        marks = [(self.share(value), text) for value, text in values]
        return [(share, text) for share, text in marks if share is not None]

    def as_json(self) -> dict[str, object]:
        """Return the axis as a page needs it to name the value at a position."""
        return {
            "name": self.name,
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "values": [value_text(value) for value in self.values],
        }

    def _along(self, value: float) -> float | None:
        if self.high <= self.low:
            return 0.5
        if self.kind == "linear":
            return (value - self.low) / (self.high - self.low)
        if self.kind == "reverse-log":
            reflected = self.low + self.high - value
            along = _log_share(reflected, self.low, self.high)
            return None if along is None else 1 - along
        return _log_share(value, self.low, self.high)


def parameter_axes(spec: StudySpec) -> list[ValueAxis]:
    """Return an axis for each name, in the order of the spec."""
    names = dict.fromkeys(parameter.name for parameter in spec.parameters)
    return [_of(name, [p for p in spec.parameters if p.name == name]) for name in names]


def goal_axis(name: str, values: Iterable[float]) -> ValueAxis:
    """Return an axis of these values; logarithmic if they differ by powers of ten."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ValueAxis(name, "linear")
    low, high = min(finite), max(finite)
    if low == high:
        return ValueAxis(name, "linear", low - 1, high + 1)
    return ValueAxis(name, "log" if 0 < low * LOG_FROM <= high else "linear", low, high)


def power(value: float) -> str:
    """Return a tick of a logarithmic axis: `0.01`, `1e−5`, `20`."""
    exponent = math.floor(math.log10(value) + 1e-9)
    if _PLAIN_FROM <= exponent <= _PLAIN_TO:
        return f"{value:.6g}"
    return f"{value / 10.0**exponent:.3g}e{MINUS if exponent < 0 else '+'}{abs(exponent)}"


def _of(name: str, parameters: Sequence[Parameter]) -> ValueAxis:
    """Return the axis of a parameter, which may have several domains under several conditions."""
    domains = [parameter.domain for parameter in parameters]
    if any(isinstance(domain, (Discrete, Categorical)) for domain in domains):
        return ValueAxis(name, "listed", values=tuple(_listed(parameters)))
    ranges = [domain for domain in domains if isinstance(domain, (Double, Integer))]
    low, high = min(name.low for name in ranges), max(name.high for name in ranges)
    scales = {parameter.scale for parameter in parameters}
    scale = parameters[0].scale if len(scales) == 1 and low > 0 else "linear"
    return ValueAxis(name, scale, low, high)


def _listed(parameters: Iterable[Parameter]) -> list[Value]:
    distinct: list[Value] = []
    for parameter in parameters:
        domain = parameter.domain
        values = domain.values if isinstance(domain, (Discrete, Categorical)) else ()
        native = [parameter.native(value) for value in values]
        distinct += [item for item in native if not any(_alike(item, one) for one in distinct)]
    return distinct


def _alike(one: Value, other: Value | None) -> bool:
    return other is not None and same_value(one, other)


def _log_share(value: float, low: float, high: float) -> float | None:
    return math.log(value / low) / math.log(high / low) if value > 0 else None


def _decades(low: float, high: float) -> list[float]:
    """Return round numbers between two positive ones: powers of ten, and more if these are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = -(-(last - first) // MOST_DECADES)
    for factors in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        powers = range(first, last + 1, max(1, every))
        decades = [factor * 10.0**exponent for exponent in powers for factor in factors]
        decades = [item for item in decades if low * (1 - 1e-9) <= item <= high * (1 + 1e-9)]
        if len(decades) >= 3:
            return decades
    return decades or [low, high]
