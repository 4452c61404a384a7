"""Reads commands of a shell: their words, their flags, and the files that here-documents write."""

from __future__ import annotations

import bisect
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.formats.command_files import file_around, file_beside
from distrain_nb.layout.formats.form import CommandForm
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.placeholders import WORDS
from distrain_nb.layout.yaml_reading import yaml_texts

_HEREDOC = re.compile(r"""<<-?[ \t]*['"]?(\w+)['"]?[ \t]*$""")


def from_command(
    text: str, forms: Sequence[CommandForm], is_request: Callable[[object], bool]
) -> Imported:
    """Read a command of one of the forms, with its file: a here-document, a text before or after
    the command, or the file that it names in the working folder. `is_request` recognizes the file.

    Raises OptionError naming what can't be read.
    """
    command, files = _apart(text)
    form = next((form for form in forms if form.verb.search(command)), None)
    if form is None:
        raise OptionError(f"only {' and '.join(f'`{form.command}`' for form in forms)} can be read")
    config = yaml_texts(files[0]) if files else None
    if not files:
        command, config = file_around(command, form, is_request)
    words = _words(command, form.command.split()[0])
    if config is None:
        config = file_beside(words, form, is_request)
    imported = form.read(words, config)
    more = [f"file {number} of {len(files)}" for number in range(2, len(files) + 1)]
    return replace(imported, left_out=(*imported.left_out, *more))


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
