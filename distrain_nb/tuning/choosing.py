"""Chooses the parameters that a trial has, and lists all trials of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from distrain_nb.errors import OptionError
from distrain_nb.tuning.spec import Double, Integer, Parameter, StudySpec, Value, same_value


def choose(spec: StudySpec, pick: Callable[[Parameter], Value]) -> dict[str, Value]:
    """Return values by name of the parameters that a trial has, parents before their children."""
    chosen: dict[str, Value] = {}
    pending = list(spec.parameters)
    while True:
        ready = [p for p in pending if p.condition is None or p.condition.holds(chosen)]
        if not ready:
            return chosen
        for parameter in ready:
            chosen[parameter.name] = pick(parameter)
        pending = [p for p in pending if p not in ready]


def grid(spec: StudySpec) -> Iterator[dict[str, Value]]:
    """Return all that can be tried, each once, made as it is asked for. Raises OptionError for a
    range of real numbers."""
    for parameter in spec.parameters:
        _listed(parameter)
    return _grid(spec.parameters, {})


def combinations(spec: StudySpec) -> int | None:
    """Return how many trials a grid has; None for a range of real numbers."""
    if any(isinstance(parameter.domain, Double) for parameter in spec.parameters):
        return None
    return _count(spec.parameters, {})


def _grid(
    parameters: Sequence[Parameter], chosen: Mapping[str, Value]
) -> Iterator[dict[str, Value]]:
    ready, rest = _next(parameters, chosen)
    if ready is None:
        yield dict(chosen)
        return
    for value in _listed(ready):
        yield from _grid(rest, {**chosen, ready.name: value})


def _count(parameters: Sequence[Parameter], chosen: Mapping[str, Value]) -> int:
    """Count without listing all: values that no condition names have as many trials each."""
    ready, waiting = _next(parameters, chosen)
    if ready is None:
        return 1
    values, parents = _listed(ready), _condition_values(ready, waiting)
    counted = sum(_count(waiting, {**chosen, ready.name: value}) for value in parents)
    rest = len(values) - len(parents)
    return counted + (rest * _count(waiting, chosen) if rest else 0)


def _next(
    parameters: Sequence[Parameter], chosen: Mapping[str, Value]
) -> tuple[Parameter | None, Sequence[Parameter]]:
    """Return the first that a trial with these values has, and the others."""
    for place, parameter in enumerate(parameters):
        if parameter.condition is None or parameter.condition.holds(chosen):
            return parameter, [*parameters[:place], *parameters[place + 1 :]]
    return None, ()


def _condition_values(parameter: Parameter, parameters: Iterable[Parameter]) -> set[Value]:
    """Return those of its values on which others depend."""
    conditions = [child.condition for child in parameters if child.condition is not None]
    named = [
        v
        for condition in conditions
        if condition.parent == parameter.name
        for v in condition.values
    ]
    if isinstance(parameter.domain, Integer):
        low, high = parameter.domain.low, parameter.domain.high
        numbers = {round(value) for value in named if not isinstance(value, str)}
        return {value for value in numbers if low <= value <= high}
    return {value for value in _listed(parameter) if any(same_value(value, name) for name in named)}


def _listed(parameter: Parameter) -> Sequence[Value]:
    domain = parameter.domain
    if isinstance(domain, Double):
        raise OptionError(
            f"search grid tries each value of a list, and {parameter.name} is a range of real "
            f"numbers: list some, as in --tune {parameter.name}={domain.low:g}|{domain.high:g}"
        )
    if isinstance(domain, Integer):
        return range(domain.low, domain.high + 1)
    return list(dict.fromkeys(parameter.native(value) for value in domain.values))
