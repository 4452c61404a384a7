"""Findings about a study, and the repairs that several rules have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.tuning.spec import (
    EPSILON,
    Categorical,
    Discrete,
    Double,
    Integer,
    Parameter,
    StudySpec,
)
from distrain_nb.tuning.text import head_text


def error(where: str, code: str, message: str, *fixes: Fix[StudySpec]) -> Finding:
    """Return an error about a study."""
    return Finding(code, Severity.ERROR, where, message, fixes)


def study_warning(where: str, code: str, message: str, *fixes: Fix[StudySpec]) -> Finding:
    """Return a warning about a study."""
    return Finding(code, Severity.WARNING, where, message, fixes)


def parameter_place(parameter: Parameter) -> str:
    """Return the place of a parameter: the magic's line up to its values."""
    return f"--tune {head_text(parameter)}"


def setting(label: str, **changes: Any) -> Fix[StudySpec]:
    """Return other fields."""
    return Fix(label, lambda spec: spec.edited(**changes))


def with_fields(label: str, parameter: Parameter, **changes: Any) -> Fix[StudySpec]:
    """Return other fields of one parameter."""
    return _for_all(label, lambda p: replace(p, **changes) if p == parameter else p)


def without(parameter: Parameter) -> Fix[StudySpec]:
    """Return the study without one parameter."""

    def apply(spec: StudySpec) -> StudySpec:
        return spec.edited(parameters=tuple(p for p in spec.parameters if p != parameter))

    return Fix(f"Remove {parameter.name}", apply)


def unconditional(parameter: Parameter) -> Fix[StudySpec]:
    return with_fields(f"Give {parameter.name} to every trial", parameter, condition=None)


def linear(parameter: Parameter) -> Fix[StudySpec]:
    return with_fields(f"Use a linear scale for {parameter.name}", parameter, scale="linear")


def renamed(old: str, new: str) -> Fix[StudySpec]:
    """Replace one name by another, in conditions and first trials too."""

    def apply(spec: StudySpec) -> StudySpec:
        parameters = tuple(_renamed(parameter, old, new) for parameter in spec.parameters)
        initial = tuple(
            {new if name == old else name: value for name, value in trial.items()}
            for trial in spec.initial
        )
        return spec.edited(parameters=parameters, initial=initial)

    return Fix(f"Call it {new}", apply)


def listed(parameter: Parameter, count: int = 5) -> Fix[StudySpec]:
    """Return some values of a range, evenly on its scale, in the place of the range."""
    domain = parameter.domain
    assert isinstance(domain, Double)
    between = _spaced(domain.low, domain.high, parameter.scale, count)[1:-1]
    rounded = (min(max(float(f"{number:.6g}"), domain.low), domain.high) for number in between)
    values = tuple(dict.fromkeys((domain.low, *rounded, domain.high)))
    return with_fields(
        f"Try {len(values)} values of {parameter.name}", parameter, domain=Discrete(values)
    )


def positive(parameter: Parameter) -> bool:
    """Return whether a logarithm of each of its values exists."""
    domain = parameter.domain
    if isinstance(domain, (Double, Integer)):
        return min(domain.low, domain.high) > 0
    return isinstance(domain, Discrete) and all(value > 0 for value in domain.values)


def contains(domain: object, value: object) -> bool:
    """Return whether a value, of the type that the cell gets, is in a domain."""
    if isinstance(domain, Categorical) or isinstance(value, str):
        return isinstance(domain, Categorical) and value in domain.values
    if not isinstance(value, (int, float)):
        return False
    if isinstance(domain, Discrete):
        return any(abs(listed_value - value) <= EPSILON for listed_value in domain.values)
    if isinstance(domain, Integer) and not float(value).is_integer():
        return False
    return isinstance(domain, (Double, Integer)) and domain.low <= value <= domain.high


def joined(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


def _renamed(parameter: Parameter, old: str, new: str) -> Parameter:
    condition = parameter.condition
    if condition and condition.parent == old:
        condition = replace(condition, parent=new)
    name = new if parameter.name == old else parameter.name
    return replace(parameter, name=name, condition=condition)


def _for_all(label: str, change: Callable[[Parameter], Parameter]) -> Fix[StudySpec]:
    return Fix(label, lambda spec: spec.edited(parameters=tuple(map(change, spec.parameters))))


def _spaced(low: float, high: float, scale: str, count: int) -> list[float]:
    steps = [number / (count - 1) for number in range(count)]
    if scale == "linear":
        return [low + (high - low) * step for step in steps]
    if scale == "log":
        return [low * (high / low) ** step for step in steps]
    return [low + high - low * (high / low) ** (1 - step) for step in steps]
