"""Rules about parameters: names, domains, scales and conditions, as Vertex AI documents them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from distrain_nb.errors import closest, shown
from distrain_nb.findings import Finding, Fix
from distrain_nb.tuning.rules.repairs import (
    contains,
    error,
    joined,
    linear,
    parameter_place,
    positive,
    study_warning,
    unconditional,
    with_fields,
    without,
)
from distrain_nb.tuning.spec import (
    Categorical,
    Condition,
    Discrete,
    Double,
    Parameter,
    StudySpec,
    Value,
    same_value,
)
from distrain_nb.tuning.words import value_text


def parameter_findings(spec: StudySpec) -> Iterator[Finding]:
    """Check each parameter by itself, and the parameters together."""
    for parameter in spec.parameters:
        yield from _name(parameter)
        yield from _bounds(parameter)
        yield from _values(parameter)
        yield from _truth(parameter)
        yield from _scale(parameter)
        yield from _default(parameter)
        yield from _condition(spec, parameter)
    yield from _repeated(spec)
    yield from _circles(spec)


def _name(parameter: Parameter) -> Iterator[Finding]:
    if not parameter.name.strip():
        message = f"invalid name {shown(parameter.name)}: expected a letter or another sign"
        yield error(parameter_place(parameter), "tune-name", message, without(parameter))


def _bounds(parameter: Parameter) -> Iterator[Finding]:
    domain = parameter.domain
    if isinstance(domain, Categorical):
        return
    numbers = domain.values if isinstance(domain, Discrete) else (domain.low, domain.high)
    if not all(map(math.isfinite, numbers)):
        message = f"{parameter.name} has values without end: expected finite numbers"
        yield error(parameter_place(parameter), "tune-finite", message, without(parameter))
    elif not isinstance(domain, Discrete) and domain.low > domain.high:
        turned = type(domain)(domain.high, domain.low, domain.default)  # type: ignore[arg-type]
        message = f"the range of {parameter.name} ends at {domain.high}, before it begins"
        fix = with_fields(f"Write {domain.high}..{domain.low}", parameter, domain=turned)
        yield error(parameter_place(parameter), "tune-range", message, fix)


def _values(parameter: Parameter) -> Iterator[Finding]:
    domain = parameter.domain
    if not isinstance(domain, (Discrete, Categorical)):
        return
    if not domain.values:
        message = f"{parameter.name} has no values to choose from"
        yield error(parameter_place(parameter), "tune-values", message, without(parameter))
        return
    distinct: list[Value] = []  # numbers are in their order, so that equal ones are neighbours
    values: tuple[Value, ...] = domain.values
    for value in dict.fromkeys(values):
        if not distinct or not same_value(value, distinct[-1]):
            distinct.append(value)
    if len(distinct) < len(domain.values):
        message = f"{parameter.name} has values twice: {joined(_again(domain.values))}"
        once = replace(domain, values=tuple(distinct))  # type: ignore[arg-type]
        fix = with_fields("Keep each value once", parameter, domain=once)
        yield error(parameter_place(parameter), "tune-values", message, fix)


def _again(values: tuple[Value, ...]) -> list[str]:
    """Return each value that equals an earlier one."""
    repeated = (
        value for n, value in enumerate(values) if any(same_value(value, v) for v in values[:n])
    )
    return list(dict.fromkeys(map(value_text, repeated)))


def _truth(parameter: Parameter) -> Iterator[Finding]:
    values = parameter.domain.values if isinstance(parameter.domain, Categorical) else ()
    if values and {*values} <= {"True", "False"}:
        message = f"{parameter.name} gets the words True and False, which both count as true"
        numbers = Discrete(tuple(float(value == "True") for value in values))
        fix = with_fields("Write 0|1", parameter, domain=numbers)
        yield study_warning(parameter_place(parameter), "tune-truth", message, fix)


def _scale(parameter: Parameter) -> Iterator[Finding]:
    if parameter.scale == "linear":
        return
    if isinstance(parameter.domain, Categorical):
        message = f"{parameter.name} has words to choose from, which no scale is for"
    elif parameter.scale == "log" and not positive(parameter):
        message = "a log scale needs values above 0, also the first of them"
    else:
        return  # what a reverse-log scale needs differs from place to place
    yield error(parameter_place(parameter), "tune-scale", message, linear(parameter))


def _default(parameter: Parameter) -> Iterator[Finding]:
    domain = parameter.domain
    if domain.default is None or isinstance(domain, Discrete) or contains(domain, domain.default):
        return  # of a list of numbers the nearest is taken
    message = f"the default {domain.default} of {parameter.name} is none of its values"
    fix = with_fields("Remove the default", parameter, domain=replace(domain, default=None))
    yield error(parameter_place(parameter), "tune-default", message, fix)


def _condition(spec: StudySpec, parameter: Parameter) -> Iterator[Finding]:
    condition = parameter.condition
    if condition is None:
        return
    parents = [parameter for parameter in spec.parameters if parameter.name == condition.parent]
    fixes: list[Fix[StudySpec]] = []
    if not parents:
        possible_parents = [
            parameter.name for parameter in spec.parameters if _can_be_parent(parameter)
        ]
        close = closest(condition.parent, {*possible_parents} - {parameter.name})
        message = f"{parameter.name} depends on {condition.parent}, which isn't a parameter"
        if close:
            changed = replace(condition, parent=close)
            fixes = [with_fields(f"Depend on {close}", parameter, condition=changed)]
    elif len(parents) > 1:
        message = f"{parameter.name} depends on {condition.parent}, which there are several of"
    elif not _can_be_parent(parents[0]):
        message = (
            f"{parameter.name} depends on {condition.parent}, a range of any numbers: expected "
            "whole numbers, a list of numbers or words"
        )
    else:
        domain = parents[0].domain
        possible = tuple(value for value in condition.values if contains(domain, value))
        if possible == condition.values and possible:
            return
        none = [value for value in condition.values if not contains(domain, value)]
        message = f"{joined(none) or 'nothing'} isn't a value of {condition.parent}"
        if possible:
            narrowed = Condition(condition.parent, possible)
            fixes = [with_fields(f"Keep {joined(possible)}", parameter, condition=narrowed)]
    yield error(
        parameter_place(parameter), "tune-condition", message, *fixes, unconditional(parameter)
    )


def _can_be_parent(parameter: Parameter) -> bool:
    return not isinstance(parameter.domain, Double)


def _repeated(spec: StudySpec) -> Iterator[Finding]:
    """Yield an error for parameters of one name whose conditions can hold at the same time."""
    counts = Counter(parameter.name for parameter in spec.parameters)
    for name in (name for name, count in counts.items() if count > 1):
        alike = [parameter for parameter in spec.parameters if parameter.name == name]
        for number, later in enumerate(alike):
            if any(_meet(earlier, later) for earlier in alike[:number]):
                message = (
                    f"{name} is defined twice, under conditions that can hold at the same time"
                )
                fix = Fix(f"Keep the first {name}", _without_one(later, number))
                yield error(parameter_place(later), "tune-twice", message, fix)


def _without_one(parameter: Parameter, number: int) -> Callable[[StudySpec], StudySpec]:
    """Remove the parameter of that name that is at a number among those of its name."""

    def apply(spec: StudySpec) -> StudySpec:
        alike = [n for n, p in enumerate(spec.parameters) if p.name == parameter.name]
        if len(alike) <= number:
            return spec
        remaining = [parameter for n, parameter in enumerate(spec.parameters) if n != alike[number]]
        return spec.edited(parameters=tuple(remaining))

    return apply


def _meet(parameter: Parameter, twin: Parameter) -> bool:
    first, second = parameter.condition, twin.condition
    if first is None or second is None or first.parent != second.parent:
        return True
    return any(same_value(value, match) for value in first.values for match in second.values)


def _circles(spec: StudySpec) -> Iterator[Finding]:
    parents = {
        parameter.name: parameter.condition.parent
        for parameter in spec.parameters
        if parameter.condition
    }
    for parameter in spec.parameters:
        if parameter.condition is None:
            continue
        visited, name = {parameter.name}, parameter.condition.parent
        while name in parents and name not in visited:
            visited.add(name)
            name = parents[name]
        if name == parameter.name:
            message = f"{parameter.name} depends on itself"
            yield error(
                parameter_place(parameter), "tune-circle", message, unconditional(parameter)
            )
