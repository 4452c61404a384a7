"""Which parameters a trial has, and all trials that a grid has."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.tuning.spec import Double, Integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from distrain_nb.tuning.spec import Parameter, StudySpec, Value


def choose(spec: StudySpec, pick: Callable[[Parameter], Value]) -> dict[str, Value]:
    """Values by name of the parameters that a trial has, parents before their children."""
    chosen: dict[str, Value] = {}
    pending = list(spec.parameters)
    while True:
        ready = [p for p in pending if p.condition is None or p.condition.holds(chosen)]
        if not ready:
            return chosen
        for each in ready:
            chosen[each.name] = pick(each)
        pending = [p for p in pending if p not in ready]


def grid(spec: StudySpec) -> Iterator[dict[str, Value]]:
    """All that can be tried, each once. Raises OptionError for a range of real numbers."""
    listed = [list(_listed(parameter)) for parameter in spec.parameters]
    seen = set()
    for values in itertools.product(*listed):
        of = dict(zip(map(id, spec.parameters), values, strict=True))
        chosen = choose(spec, lambda each: of[id(each)])  # noqa: B023
        key = tuple(sorted(chosen.items()))
        if key not in seen:
            seen.add(key)
            yield chosen


def _listed(parameter: Parameter) -> Iterable[Value]:
    domain = parameter.domain
    if isinstance(domain, Double):
        raise OptionError(
            f"search grid tries each value of a list, and {parameter.name} is a range of real "
            f"numbers: list some, as in --tune {parameter.name}={domain.low:g}|{domain.high:g}"
        )
    if isinstance(domain, Integer):
        return range(domain.low, domain.high + 1)
    return [parameter.native(value) for value in domain.values]
