"""The fields of a form that its place's backend declares: options with a label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import find, option_choices
from distrain_nb.errors import OptionError
from distrain_nb.findings import Fix
from distrain_nb.layout.choices import Choice
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats import as_json
from distrain_nb.layout.formats.letter_case import camel
from distrain_nb.layout.words import quoted, words_of
from distrain_nb.ui.form.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.findings import Finding
    from distrain_nb.layout import Layout
    from distrain_nb.layout.formats import Imported
    from distrain_nb.layout.option import Option
    from distrain_nb.types import Json

OWN_PREFIX = "own"  # their paths are `own.NAME`

_YES = "yes"
_NO = ("", "no", "off", "false")
_END = ")\n"  # of a call in Python


def own_fields(place: str) -> Iterator[tuple[str, Field]]:
    """Yield the fields of a place, each with its path."""
    for option in _labelled(place):
        name = (
            f"{OWN_PREFIX}-{option.field}"  # the page's class for it, which others have of theirs
        )
        yield f"{OWN_PREFIX}.{option.field}", replace(Field.of(option), name=name)


def own_choices(layout: Layout) -> dict[str, tuple[Choice, ...]]:
    """Return by path the values that those fields can take beside a layout, where they say so."""
    choices = {}
    for option in _labelled(layout.on):
        if option.choices:
            choices[f"{OWN_PREFIX}.{option.field}"] = option_choices(layout, option.field)
        elif option.default is False:
            choices[f"{OWN_PREFIX}.{option.field}"] = (Choice(_YES, f"{_YES} · {option.help}"),)
    return choices


def own_words(place: str, texts: Mapping[str, str]) -> list[str]:
    """Return by name the options of a cell that equal the texts of a place's fields."""
    return [word for option in _labelled(place) for word in _words(option, texts)]


def _words(option: Option, texts: Mapping[str, str]) -> list[str]:
    value = _value(option, texts)
    if value is True:
        return [option.name]
    values = value if isinstance(value, list) else [value] if value else []
    return [f"{option.name} {quoted(str(item))}" for item in values]


def _value(option: Option, texts: Mapping[str, str]) -> Json:
    """Return what a request has of a field's text: a text, a list of texts, or a truth value."""
    text = texts.get(option.field, "").strip()
    if option.default is False:
        return text.lower() not in _NO
    return list(words_of(text)) if option.default == () else text


@dataclass(frozen=True)
class LineFix(Fix[str]):
    """A repair of the options of a cell."""


def own_findings(layout: Layout, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what a place says of a layout and the texts of its fields; nothing where it fails."""
    try:
        findings = tuple(find(layout.on).about(layout, {n: t for n, t in texts.items() if t}))
    except Exception:  # the service may be away: the form goes on without its limits
        return
    fields = {option.field for option in _labelled(layout.on)}
    for finding in findings:
        where = f"{OWN_PREFIX}.{finding.where}" if finding.where in fields else finding.where
        fixes = tuple(LineFix(fix.label, fix.apply) for fix in finding.fixes)
        yield replace(finding, where=where, fixes=fixes)


def from_line(line: str) -> tuple[str, dict[str, str]]:
    """Return a line without the options that fields of its place show, and their texts by name."""
    all_words = words_of(line)
    options = {option.name: option for option in _labelled(_place(all_words))}
    rest, texts, words = [], dict[str, str](), iter(all_words)
    for word in words:
        flag, equals, value = word.partition("=")
        option = options.get(flag)
        if option is None:
            rest.append(quoted(word))
        elif option.default is False:
            texts[option.field] = value if equals else _YES
        else:
            text = value if equals else next(words, "")
            earlier = texts.get(option.field, "") if option.default == () else ""
            again = quoted(text) if option.default == () else text
            texts[option.field] = f"{earlier} {again}".strip()
    return " ".join(rest), texts


def from_request(imported: Imported) -> tuple[Imported, dict[str, str]]:
    """Return what was read of another form without what fields of its place stand for, and their
    texts by name."""
    texts, lost = {}, dict.fromkeys(imported.left_out)
    for option in _labelled(imported.layout.on):
        for path, value in imported.values.items():
            written = _text(option, path, value) if path in lost else ""
            if written:
                texts[option.field] = written
                del lost[path]
    return replace(imported, left_out=tuple(lost)), texts


def _text(option: Option, path: str, value: object) -> str:
    """Return the text of a field for what is at a path of a request; empty if it is for another
    option, or for more than that."""
    for where in option.request:
        if path.partition("=")[0] == where or f".{camel(path)}".endswith(f".{where}"):
            return _written(value)
        place, _, key = where.rpartition(".")
        if place and f".{camel(path)}".endswith(f".{place}") and isinstance(value, dict):
            inner = {camel(str(name)): it for name, it in value.items()}
            return _written(inner[key]) if inner.keys() == {key} else ""
    return ""


def _written(value: object) -> str:
    if isinstance(value, bool):
        return _YES if value else ""
    if isinstance(value, list):
        return " ".join(quoted(str(item)) for item in value)
    return value if isinstance(value, str) else ""


def with_own(form: str, place: str, text: str, texts: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return an export with the values of a place's fields where it is a request, and the labels
    of those that it has no place for."""
    values = {option: _value(option, texts) for option in _labelled(place)}
    chosen = {option: value for option, value in values.items() if value}
    if not chosen or form in ("options", "successor"):
        return text, []
    if form.endswith("-python"):
        return _with_arguments(text, chosen)
    if not form.endswith(("-json", "-yaml")):
        return text, [option.label for option in chosen]
    import yaml

    request: dict[str, Any] = yaml.safe_load(text)
    for option, value in chosen.items():
        if option.request:
            *above, key = option.request[0].split(".")
            inner = request
            for name in above:
                inner = inner.setdefault(name, {})
            inner[key] = value
    lost = [option.label for option in chosen if not option.request]
    return (as_json if form.endswith("-json") else data_yaml)(request), lost


def _with_arguments(text: str, chosen: Mapping[Option, Json]) -> tuple[str, list[str]]:
    """Return a call with arguments more, of those that it has, and the labels of others."""
    arguments = {
        name: value
        for option, value in chosen.items()
        for name in option.request
        if name.islower() and "." not in name
    }
    lines = "".join(f"    {name}={value!r},\n" for name, value in arguments.items())
    if lines and text.endswith(f"({_END}"):
        lines = f"\n{lines}"
    lost = [option.label for option in chosen if arguments.keys().isdisjoint(option.request)]
    return f"{text.removesuffix(_END)}{lines}{_END}", lost


def _place(words: list[str]) -> str:
    """Return the place of the last `--on`."""
    named = [after for word, after in pairwise(words) if word == "--on"]
    named += [word.partition("=")[2] for word in words if word.startswith("--on=")]
    return named[-1] if named else ""


def _labelled(place: str) -> Iterator[Option]:
    try:
        options = declared(find(place).options)
    except OptionError:  # a place that takes no jobs has layouts all the same
        return
    yield from (option for option in options.values() if option.label)
