"""Reads a layout from whatever was pasted, recognizing the form by the readers of all places."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.commands import from_command
from distrain_nb.layout.formats.form import CommandForm, MappingForm, PythonForm, TextForm
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.python_source import PythonSource, parsed
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import places
from distrain_nb.layout.yaml_reading import check_length, yaml_texts

if TYPE_CHECKING:
    from distrain_nb.layout.formats.form import ReadForm
    from distrain_nb.layout.formats.python_names import Call

_FormT = TypeVar("_FormT", bound="ReadForm")
# None of them looks twice at what can't match: an open string ends with the text.
_STRINGS_AND_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*', re.DOTALL)
_COMMAND = r"^[ \t]*(?:[!$][ \t]*)?{}\s"
_OPTIONS = re.compile(r"%%distrain|--\w")


def _is_request(value: object) -> bool:
    return isinstance(value, dict) and any(form.matches(value) for form in _readers(MappingForm))


def read_any(text: str) -> Imported:
    """Return the layout in a pasted text, and what of the text it has no place for.

    Raises OptionError naming what is wrong, or the forms that can be read.
    """
    check_length(text)
    text = text.strip()
    for reader in _readers(TextForm):
        if reader.pattern.search(text):
            return reader.read(text)
    is_python = any(reader.pattern.search(text) for reader in _readers(PythonForm))
    commands = _readers(CommandForm)
    programs = {reader.command.split()[0] for reader in commands}
    is_command = any(re.search(_COMMAND.format(name), text, re.MULTILINE) for name in programs)
    if is_command and (not is_python or any(reader.verb.search(text) for reader in commands)):
        return from_command(text, commands, _is_request)
    if text.startswith(("{", "[")):
        return _from_json(text)
    if _OPTIONS.match(text):
        return Imported("options", Layout.from_line(text.removeprefix("%%distrain")))
    if is_python:
        return from_python(text)
    try:
        value = yaml_texts(text)
    except OptionError:
        if not _is_code(text):
            raise
        return from_python(text)
    return _from_mapping(value, text)


def from_python(text: str) -> Imported:
    """Read the calls of the places' SDKs in a piece of Python. Raises OptionError if there are
    none."""
    source = _source(text)
    readers = _readers(PythonForm)
    with_calls = (reader for reader in readers if any(map(reader.wants, source.calls)))
    for reader in (*with_calls, *readers):
        imported = reader.read(source)
        if imported is not None:
            return imported
    lacking = ", and ".join(reader.lacking for reader in _readers(PythonForm))
    paste = ", or ".join(filter(None, (reader.paste for reader in _readers(PythonForm))))
    raise OptionError(f"there is {lacking}: paste {paste}")


def reads_layout(text: str) -> bool:
    """Return whether there is a call of the SDKs in a text that a layout can be read from."""
    return any(map(_is_wanted, _source(text).calls))


def _source(text: str) -> PythonSource:
    positions: dict[str, tuple[str, ...]] = {**PIPELINE_POSITIONS}
    for reader in reversed(_readers(PythonForm)):
        positions |= reader.positions
    return PythonSource(text, _is_wanted, positions)


def _is_wanted(call: Call) -> bool:
    return any(reader.wants(call) for reader in _readers(PythonForm))


def _readers(kind: type[_FormT]) -> list[_FormT]:
    """Return the readers of a kind, of all places."""
    all_readers = (reader for place in places().values() for reader in place.readers)
    return [reader for reader in all_readers if isinstance(reader, kind)]


def _is_code(text: str) -> bool:
    """Return whether a text is Python that does something, with IPython's commands passed over."""
    try:
        tree = parsed(text)
    except OptionError:
        return False
    return any(isinstance(node, (ast.Assign, ast.Call, ast.Import)) for node in ast.walk(tree))


def _from_json(text: str) -> Imported:
    try:
        value = json.loads(_tidied(text))
    except ValueError as error:
        if _is_literal(text):
            return from_python(text)
        raise OptionError(f"not JSON: {error}") from None
    except RecursionError:
        raise OptionError("not JSON of a layout: it is nested too deeply") from None
    return _from_mapping(value, text)


def _is_literal(text: str) -> bool:
    """Return whether a text begins with a mapping or list of Python's."""
    try:
        return bool(parsed(text).body)
    except OptionError:
        return False


def _tidied(text: str) -> str:
    """Strip JSON of what documents put into it: comments, `...`, and the commas these leave."""
    text = _STRINGS_AND_COMMENTS.sub(lambda match: "" if match[0][0] == "/" else match[0], text)
    text = re.sub(r"\.\.\.", "", text)
    return re.sub(r",(\s*[}\]])", r"\1", text)


def _from_mapping(value: object, text: str) -> Imported:
    for reader in _readers(MappingForm):
        if reader.matches(value):
            return reader.read(value)
    if isinstance(value, dict) and "on" in value:
        return Imported("layout", Layout.from_yaml(text))
    raise OptionError(f"this is not a layout in a known form; paste {forms()}")


def forms() -> str:
    """Return the forms that can be read, in words."""
    titles = [reader.title for place in places().values() for reader in place.readers]
    forms_of_ours = ("a layout's own YAML", "the options of %%distrain")
    return f"{', '.join([*filter(None, titles), forms_of_ours[0]])}, or {forms_of_ours[1]}"
