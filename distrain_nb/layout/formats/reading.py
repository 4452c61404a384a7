"""Reads a layout from whatever was pasted, recognizing the form by the readers of all places."""

from __future__ import annotations

import ast
import bisect
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.files import check_length, yaml_texts
from distrain_nb.layout.formats.command_files import file_around, file_beside
from distrain_nb.layout.formats.form import CommandForm, MappingForm, PythonForm, TextForm
from distrain_nb.layout.formats.pieces import WORDS, Imported
from distrain_nb.layout.formats.python_source import PythonSource, parsed
from distrain_nb.layout.formats.python_values import PIPELINE_POSITIONS
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import places

if TYPE_CHECKING:
    from distrain_nb.layout.formats.form import ReadForm
    from distrain_nb.layout.formats.python_names import Call

_HEREDOC = re.compile(r"""<<-?[ \t]*['"]?(\w+)['"]?[ \t]*$""")


def from_command(text: str, forms: Sequence[CommandForm]) -> Imported:
    """Read a command of one of the forms, with its file: a here-document, a text before or after
    the command, or the file that it names in the working folder.

    Raises OptionError naming what can't be read.
    """
    command, files = _apart(text)
    form = next((form for form in forms if form.verb.search(command)), None)
    if form is None:
        raise OptionError(f"only {' and '.join(f'`{form.command}`' for form in forms)} can be read")
    config = yaml_texts(files[0]) if files else None
    if not files:
        command, config = file_around(command, form, _is_request)
    words = _words(command, form.command.split()[0])
    if config is None:
        config = file_beside(words, form, _is_request)
    imported = form.read(words, config)
    more = [f"file {number} of {len(files)}" for number in range(2, len(files) + 1)]
    return replace(imported, left_out=(*imported.left_out, *more))


def _is_request(value: object) -> bool:
    return isinstance(value, dict) and any(form.matches(value) for form in _readers(MappingForm))


def _apart(text: str) -> tuple[str, list[str]]:
    """Return the command without its here-documents, and these. Raises OptionError for one left
    open."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.rstrip(), []).append(number)
    command, files, at = [], [], 0
    while at < len(lines):
        match = _HEREDOC.search(lines[at])
        command.append(lines[at][: match.start()] if match else lines[at])
        if match:
            closing = ends.get(match[1], [])
            first = bisect.bisect_right(closing, at)
            if first == len(closing):
                raise OptionError(f"the file that begins with {shown(match[0])} has no end")
            files.append("\n".join(lines[at + 1 : closing[first]]))
            at = closing[first]
        at += 1
    return "\n".join(command), files


def _words(command: str, program: str) -> list[str]:
    try:
        words = shlex.split(command[command.index(program) :].replace("\\\n", " "))
    except ValueError as error:
        raise OptionError(f"invalid command: {error}") from None
    return words


def flags(words: Sequence[str], verb: str) -> Iterator[tuple[str, str]]:
    """Yield the flags with their values, whether `--flag=value` or `--flag value`.

    A word behind `verb` that belongs to no flag has the empty name, all of the program's own behind
    `--` have that for a name.
    """
    rest = list(words[words.index(verb) + 1 :] if verb in words else words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield from (("--", script_word) for script_word in rest)
            return
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            yield "", word
        elif equals or not rest or rest[0].startswith("-"):
            yield name, value
        else:
            yield name, rest.pop(0)


def lost_settings(name: str, value: str, *, has_file: bool) -> list[str]:
    """List what is lost with a flag, or a word, that a layout has no place for."""
    if name == "config":
        return [] if has_file else [f"--config {value}"]
    if name == "--":
        return [value]
    if value in WORDS:
        return []
    return [f"--{name}" if name else value]


_FormT = TypeVar("_FormT", bound="ReadForm")

# None of them looks twice at what can't match: an open string ends with the text.
_STRINGS_AND_COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*', re.DOTALL)
_COMMAND = r"^[ \t]*(?:[!$][ \t]*)?{}\s"
_OPTIONS = re.compile(r"%%distrain|--\w")


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
        return from_command(text, commands)
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
