"""The file that a command names: pasted around the command, or beside the notebook."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.form import CommandForm
from distrain_nb.layout.yaml_reading import MOST_CHARACTERS, yaml_texts

_PROMPT = r"[ \t]*(?:[!$][ \t]*)?"
# What stands around a pasted file: a cell's magic, a fence, the name of the file alone.
_HEADING = re.compile(r"[ \t]*(?:%%writefile\b.*|cat .*|```.*|[\w./-]+\.(?:ya?ml|json)[ \t]*:?)")


def file_around(
    command: str, form: CommandForm, is_file: Callable[[object], bool]
) -> tuple[str, object]:
    """Return the command alone and the file that stands before or after it; the same text and
    None where there is none."""
    program = re.compile(rf"{_PROMPT}{re.escape(form.command.split()[0])}\s")
    lines = _logical_lines(command)
    commands = [line for line in lines if program.match(line)]
    full = next((line for line in commands if form.verb.search(line)), None)
    if full is None:
        return command, None
    rest = [line for line in lines if line not in commands and not _HEADING.fullmatch(line)]
    try:
        value = yaml_texts("\n".join(rest))
    except OptionError:
        return command, None
    return (full, value) if is_file(value) else (command, None)


def _logical_lines(text: str) -> list[str]:
    """Return the lines of a text; those that a backslash continues are one."""
    lines: list[str] = []
    goes_on = False
    for line in text.split("\n"):
        if goes_on:
            lines[-1] += f"\n{line}"
        else:
            lines.append(line)
        goes_on = line.endswith("\\")
    return lines


def file_beside(
    words: Sequence[str], form: CommandForm, is_file: Callable[[object], bool]
) -> object:
    """Return the file in the working folder that a command names; None where there is none."""
    named = [after for word, after in pairwise(words) if word in form.files]
    for word in words:
        flag, equals, value = word.partition("=")
        if equals and flag in form.files:
            named.append(value)
    for name in named:
        try:
            value = yaml_texts(_text(name.removeprefix("@")))
        except (OptionError, OSError, ValueError):
            continue
        if is_file(value):
            return value
    return None


def _text(name: str) -> str:
    """Read a file below the working folder. Raises OSError or ValueError for any other.

    The text is a stranger's: it leads neither outside of the folder nor, by a pipe, to a hang.
    """
    path = Path(name)
    if path.is_absolute() or not path.resolve().is_relative_to(Path.cwd().resolve()):
        raise ValueError(name)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(name)
        return file.read(MOST_CHARACTERS + 1)
