"""A whole study as the magic's options and as YAML: its parts as texts, by option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any, TypeAlias

from distrain_nb.errors import OptionError, did_you_mean, shown
from distrain_nb.findings import Finding, Fix
from distrain_nb.layout.files import plain_yaml
from distrain_nb.layout.option import Option
from distrain_nb.layout.words import quoted, words_of
from distrain_nb.layout.yaml_reading import yaml_texts
from distrain_nb.repairs import with_each, with_option
from distrain_nb.tuning import text
from distrain_nb.tuning.spec import Condition, Parameter, StudySpec, Value

Texts: TypeAlias = "Mapping[str, str | list[str]]"
_BY_PLACE = "the place's choice"
STUDY = Option("study", "FILE", "study in YAML or in a cloud's format; options change it")


def _whole_number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise OptionError("expected a whole number") from None


_PARTS = (
    Option(
        "tune", "NAME=LOW..HIGH",
        "variable or argument, and the values to try; or NAME=VALUE|VALUE",
        grammar=text.TUNE_FORM, read=text.parameter, write=text.parameter_text, several=True,
        part="parameters",
    ),
    Option(
        "goal", "min:METRIC", "metric to minimize; or max:METRIC",
        grammar=text.GOAL_FORM, read=text.goal, write=text.goal_text, several=True, part="goals",
        label="Goal", hint="min:val/loss",
    ),
    Option(
        "trials", "N", "number of trials", read=_whole_number,
        label="Trials", kind="number", hint="1",
    ),
    Option(
        "parallel", "N", "number of trials to run at once", read=_whole_number,
        label="At once", kind="number", hint="1",
    ),
    Option(
        "search", "tpe|gp|random|grid", "algorithm that chooses the next values",
        grammar=text.SEARCH_FORM, read=text.search, write=text.search_text,
        label="Search", kind="combo", hint="tpe",
    ),
    Option(
        "stop", "median|decay-curve", "rule that stops unpromising trials early",
        grammar=text.STOP_FORM, read=text.stopping, write=text.stopping_text, part="stopping",
        label="Stop early", kind="combo", hint="never",
    ),
    Option(
        "max_failed", "N", "number of failed trials that ends the study",
        read=_whole_number, label="Failures that end it", kind="number", hint=_BY_PLACE, extra=True,
    ),
    Option(
        "initial", text.INITIAL_FORM, "values to try first", read=text.initial,
        write=text.initial_text, several=True, label="Begin with", hint="lr=0.01,width=32",
        extra=True,
    ),
    Option(
        "measurement", "last|best", "which value of a trial counts", words=("last", "best"),
        label="Value that counts", kind="combo", hint=_BY_PLACE, extra=True,
    ),
    Option(
        "noise", "low|high", "noise of the goal (Vertex AI)", words=("low", "high"),
        label="Noise of the goal", kind="combo", hint=_BY_PLACE, extra=True,
    ),
    Option(
        "end", "SETTING=VALUE,…", "conditions that end the study early",
        read=text.end, write=text.end_text,
        label="End early", hint="such as max-duration=2h", extra=True,
    ),
)  # fmt: skip
PARTS = {option.field: option for option in _PARTS}


def study(options: Mapping[str, object]) -> StudySpec:
    """Return a spec from texts by option, lists where there are several; None is what wasn't given.

    Raises OptionError naming the option, the value and the allowed form.
    """
    return changed(StudySpec((), ()), options)


def changed(spec: StudySpec, options: Mapping[str, object]) -> StudySpec:
    """Return the spec with what options say in the place of its own. Raises OptionError as
    `study`."""
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in PARTS:
            hint = did_you_mean(name, PARTS, ".")
            raise OptionError(f"unknown part of a study {shown(name)}{hint} There are {_names()}")
        if value is not None:
            values[PARTS[name].part or name] = _read(name, value)
    return _native(spec.edited(**values))


def texts(spec: StudySpec) -> dict[str, str | list[str]]:
    """Write the fields of a spec that differ from their defaults, by option; `study` reads them
    back."""
    options: dict[str, str | list[str]] = {}
    for name, part in PARTS.items():
        value = getattr(spec, part.part or name)
        if part.several and value:
            options[name] = [part.write(member) for member in value]
        elif not part.several and value != getattr(StudySpec, part.part or name):
            options[name] = part.write(value)
    return options


def printed(spec: StudySpec) -> Iterator[str]:
    """Yield the options of a study, each with its value, as the magic's line has them."""
    for name, value in texts(spec).items():
        for member in value if isinstance(value, list) else [value]:
            yield f"{PARTS[name].name} {quoted(member)}"


def from_line(line: str) -> tuple[str, StudySpec | None]:
    """Return the line without the options of a study, and the study; None where it has none of
    them.

    Raises OptionError as `study` does.
    """
    flags = {option.name: option.field for option in _PARTS}
    options: dict[str, list[str]] = {}
    rest, words = [], iter(words_of(line))
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in flags:
            options.setdefault(flags[flag], []).append(value if equals else next(words, ""))
        else:
            rest.append(quoted(word))
    return " ".join(rest), study(options) if options else None


def in_cell(finding: Finding, spec: StudySpec) -> Finding:
    """Return a finding about a study whose repairs are of the text of the cell that it is written
    in."""
    before = texts(spec)
    fixes = tuple(
        Fix(fix.label, partial(_retold, before, texts(fix.apply(spec)))) for fix in finding.fixes
    )
    return replace(finding, fixes=fixes)


def to_yaml(spec: StudySpec) -> str:
    """Return the parts by option, as a YAML mapping."""
    return plain_yaml(texts(spec))


def from_yaml(text: str) -> StudySpec:
    """Read what `to_yaml` gives. Raises OptionError as `study` does."""
    return from_mapping(yaml_texts(text))


def from_mapping(mapping: object) -> StudySpec:
    """Read the mapping of a YAML text. Raises OptionError as `study` does."""
    if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping):
        raise OptionError("invalid study: expected a mapping such as `tune: lr=1e-5..1e-1:log`")
    return study({name.replace("-", "_"): value for name, value in mapping.items()})


def _read(name: str, value: object) -> Any:
    part = PARTS[name]
    flag, form = part.name, part.grammar or part.form
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    if not part.several and len(listed) != 1:
        raise OptionError(f"invalid {flag} {shown(value)}: expected one value, {form}")
    members = []
    for member in listed:
        try:
            if part.words and member not in part.words:
                raise OptionError(f"expected {form}{did_you_mean(str(member), part.words)}")
            members.append(part.read(str(member).strip()))
        except OptionError as error:
            raise OptionError(f"invalid {flag} {shown(member)}: {error}") from None
    return tuple(members) if part.several else members[0]


def _retold(before: Texts, after: Texts, cell: str) -> str:
    """Return a cell's text whose options make one study of another."""
    for name, part in PARTS.items():
        flag, old, new = part.name, before.get(name, []), after.get(name, [])
        if part.several:
            cell = with_each(cell, flag, list(_changes(flag, list(old), list(new))))
        elif old != new:
            cell = with_option(cell, [flag], f"{flag} {quoted(str(new))}" if new else "")
    return cell


def _changes(flag: str, old: list[str], new: list[str]) -> Iterator[str | None]:
    """Yield what becomes of each old value: None as it is, new text, or an empty one. Then the
    values to add."""
    added: list[str] = []
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            yield from [None] * (end - start)
            continue
        instead = [f"{flag} {quoted(value)}" for value in new[first:last]]
        yield from (*instead[: end - start], *[""] * (end - start - len(instead)))
        added += instead[end - start :]
    yield from added


def _native(spec: StudySpec) -> StudySpec:
    """Return the spec with each value of a condition or a first trial of its parameter's type."""
    named = {parameter.name: parameter for parameter in spec.parameters}
    parameters = tuple(_conditioned(parameter, named) for parameter in spec.parameters)
    trials = tuple(
        {name: _typed(named.get(name), value) for name, value in trial.items()}
        for trial in spec.initial
    )
    return spec.edited(parameters=parameters, initial=trials)


def _conditioned(parameter: Parameter, named: Mapping[str, Parameter]) -> Parameter:
    if parameter.condition is None:
        return parameter
    parent, values = parameter.condition.parent, parameter.condition.values
    typed = tuple(_typed(named.get(parent), value) for value in values)
    return Parameter(parameter.name, parameter.domain, parameter.scale, Condition(parent, typed))


def _typed(parameter: Parameter | None, value: Value) -> Value:
    try:
        return value if parameter is None else parameter.native(value)
    except ValueError:
        return value  # which its rule finds


def _names() -> str:
    return ", ".join(PARTS)
