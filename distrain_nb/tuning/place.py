"""The places where studies run, as studies know them: their limits, and the forms of their studies.

A place of this package declares itself by an entry point of the group `distrain_nb.studies`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from distrain_nb import installed
from distrain_nb.findings import Finding
from distrain_nb.layout.place import PLACES
from distrain_nb.tuning.spec import Search, StudySpec

if TYPE_CHECKING:
    from distrain_nb.layout.formats.python_names import Call
    from distrain_nb.tuning.formats.pieces import ImportedStudy

GROUP = "distrain_nb.studies"


@dataclass(frozen=True)
class StudyForm:
    """A form that a study can be copied in. `text` raises OptionError for what has no sense."""

    name: str
    title: str
    text: Callable[[StudySpec], str]

    def left_out(self, spec: StudySpec) -> tuple[str, ...]:
        """Name the parts of a study that this form has no place for, such as `initial` or
        `lr.default`."""
        text = self.text(spec)
        return tuple(name for name, without in _without(spec) if self.text(without) == text)


@dataclass(frozen=True)
class PythonStudies:
    """How studies stand in Python for an SDK.

    `pattern` recognizes a text; `tuner` is the class of a tuning job, and `positions` has the names
    of the arguments that notebooks give without, by function. `from_call` reads a call of `tuner`;
    `from_value` a value that a text assigns and gives to no job, None if it is no study.
    """

    pattern: re.Pattern[str]
    tuner: str
    positions: Mapping[str, tuple[str, ...]]
    from_call: Callable[[Call], ImportedStudy]
    from_value: Callable[[object, object], ImportedStudy | None]


@dataclass(frozen=True)
class StudyPlace:
    """A place with a service that runs studies.

    `findings` checks a study against its limits. `forms` are those that its studies are written in;
    `readers` read JSON or YAML, by a key that the form alone has, and `pasted` names these.
    """

    findings: Callable[[StudySpec], Iterator[Finding]]
    forms: tuple[StudyForm, ...]
    readers: Mapping[str, Callable[[object], ImportedStudy]]
    pasted: Sequence[str]
    python: PythonStudies | None = None


def study_place(name: str) -> StudyPlace | None:
    """Look a place up by its name; None if no service of it is known to run studies."""
    point = installed.points_of(GROUP).get(name)
    place: StudyPlace | None = point.load() if point else None
    return place


def study_places() -> Sequence[StudyPlace]:
    """Return the places of this package, in the order of lists."""
    return [place for place in map(study_place, PLACES) if place]


def _without(spec: StudySpec) -> Iterator[tuple[str, StudySpec]]:
    """Yield the study without each of the things that were chosen, by their names."""
    yield "trials", spec.edited(trials=spec.trials + 1)
    if spec.search.algorithm not in (None, "gp"):  # which is what a service calls Bayesian
        yield "search", spec.edited(search=Search(None, spec.search.seed))
    if spec.search.seed is not None:
        yield "search.seed", spec.edited(search=Search(spec.search.algorithm))
    for name in ("stopping", "max_failed", "initial", "noise", "measurement"):
        if getattr(spec, name):
            yield name, spec.edited(**{name: getattr(StudySpec, name)})
    for field in fields(spec.end):
        if getattr(spec.end, field.name) is not None:
            yield f"end.{field.name}", spec.edited(end=replace(spec.end, **{field.name: None}))
    for number, goal in enumerate(spec.goals[1:], 1):
        yield (
            f"goal {goal.metric}",
            spec.edited(goals=spec.goals[:number] + spec.goals[number + 1 :]),
        )
    for number, parameter in enumerate(spec.parameters):
        changes = {"condition": None, "scale": "linear"}
        for name, plain in changes.items():
            if getattr(parameter, name) != plain:
                changed = replace(parameter, **{name: plain})  # type: ignore[arg-type]
                yield f"{parameter.name}.{name}", _with(spec, number, changed)
        if parameter.domain.default is not None:
            bare = replace(parameter, domain=replace(parameter.domain, default=None))
            yield f"{parameter.name}.default", _with(spec, number, bare)


def _with(spec: StudySpec, number: int, parameter: object) -> StudySpec:
    parameters = (*spec.parameters[:number], parameter, *spec.parameters[number + 1 :])
    return spec.edited(parameters=parameters)
