"""Repairs of a cell's text, from its `%%distrain` line on, for findings about the cell.

A repair searches for the text that it changes, so that it also fits a cell that was edited since.
If that text is gone, the repair changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from distrain_nb.findings import Fix

MAGICS = ("%%distrain", "%distrain")
# Texts, so that `re` compiles them only when they are used: `%load_ext` imports this module.
_RUN = r"\s*%distrain\s+run(?!\S)"
_CONTINUED = r"\\[ \t]*(?:\n[ \t]*|\Z)"
# No line of Python begins so, except for a name with two signs before it.
_OPTION = r"\s*(--(\s|$|[A-Za-z])|-n[\s=]*\d)"
_CODE = r"\s*((async|class|def|for|from|if|import|try|while|with)\b|[@#])"


def add_line(line: str) -> Fix[str]:
    """Insert a line as the first of the cell's code."""

    def apply(text: str) -> str:
        lines = text.split("\n")
        at = head_lines(text)
        return text if line in lines else "\n".join([*lines[:at], line, *lines[at:]])

    return Fix(f"Add `{line}`", apply)


def append_line(line: str) -> Fix[str]:
    """Append a line to the cell's code."""

    def apply(text: str) -> str:
        return text if text.rstrip().endswith(f"\n{line}") else f"{text.rstrip()}\n\n{line}\n"

    return Fix(f"Add `{line}`", apply)


def add_option(option: str) -> Fix[str]:
    """Append an option to the magic's line, before the program's own arguments."""

    def apply(text: str) -> str:
        lines = text.split("\n")
        last = max(head_lines(text) - 1, 0)
        if option in lines[last]:
            return text
        lines[last] = _with(option, lines[last])
        return "\n".join(lines)

    return Fix(f"Add `{option}`", apply)


def _with(option: str, line: str) -> str:
    """Insert an option before the program's arguments.

    They begin right after a script, and in a cell behind ` -- `.
    """
    if run := re.match(_RUN, line):
        return f"{run[0]} {option}{line[run.end() :]}"
    words, separator, arguments = line.partition(" -- ")
    return f"{words.rstrip()} {option}{separator}{arguments}"


def write_option(word: str, instead: str) -> Fix[str]:
    """Replace one word of the magic's line."""
    return _in_head(re.compile(rf"(?<!\S){re.escape(word)}(?![^\s=])"), instead)


def write_in_option(part: str, instead: str) -> Fix[str]:
    """Replace a part of an option's value, such as one of several names."""
    return _in_head(re.compile(rf"(?<![\w./-]){re.escape(part)}(?![\w./-])"), instead)


def with_option(text: str, names: Sequence[str], written: str) -> str:
    """Return a cell's text with an option as *written*.

    It replaces the option that has one of *names*, or is added. If *written* is empty, the option
    is removed.
    """
    head, rest = _parted(text)
    if _option_pattern(names).search(head):
        head = _option_pattern(names).sub(lambda _: written, head, count=1)
        return f"{head if written else head.replace('  ', ' ').rstrip()}{rest}"
    return add_option(written).apply(text) if written else text


def with_each(text: str, name: str, written: Sequence[str | None]) -> str:
    """Return a cell's text with new texts for an option that is there several times.

    Each text of *written* replaces one of them in turn. None leaves it as it is, and an empty text
    removes it. Further texts are added.
    """
    head, rest = _parted(text)
    remaining = iter(written)

    def instead(match: re.Match[str]) -> str:
        new = next(remaining, None)
        return match[0] if new is None else new

    changed = _option_pattern([name]).sub(instead, head)
    text = f"{changed if '' not in written else changed.replace('  ', ' ').rstrip()}{rest}"
    for more in filter(None, remaining):
        text = add_option(more).apply(text)
    return text


def _option_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for an option with its value."""
    any_name = "|".join(map(re.escape, names))
    return re.compile(rf"(?<!\S)(?:{any_name})(?:=|\s+)(?:'[^']*'|\"[^\"]*\"|\S+)")


def write_name(name: str, instead: str) -> Fix[str]:
    """Replace a name in the cell's code, but no attribute of that name."""

    def apply(text: str) -> str:
        head, body = _parted(text)
        return head + re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", lambda _: instead, body)

    return Fix(f"Write `{instead}`", apply)


def write_code(code: str, instead: str) -> Fix[str]:
    """Replace a piece of the cell's code."""

    def apply(text: str) -> str:
        head, body = _parted(text)
        return head + body.replace(code, instead, 1)

    return Fix(f"Write `{instead}`", apply)


def head_lines(text: str) -> int:
    """Return how many lines the magic and its options take; 0 without a magic.

    They continue after a backslash at the end of a line, and on lines that begin with an option.
    """
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if line.lstrip().startswith(MAGICS)), -1) + 1
    while 0 < at < len(lines) and _goes_on(lines[at - 1], lines[at]):
        at += 1
    return at


def _goes_on(line: str, below: str) -> bool:
    return line.rstrip().endswith("\\") or re.match(_OPTION, below) is not None


def code_in_head(text: str) -> tuple[str, Fix[str]] | None:
    """Return a line of code that a backslash above makes a line of options, and its repair.

    It is the first such line; None if there is none.
    """
    lines = text.split("\n")
    for number in range(1, head_lines(text)):
        line = lines[number]
        continued = lines[number - 1].rstrip().endswith("\\")
        if not continued or not line.strip() or re.match(_OPTION, line):
            continue
        words = join_lines("\n".join(lines[:number])).split()
        takes_any = words[-1].startswith(("-", "%")) or "--" in words
        if re.match(_CODE, line) or not takes_any:
            return line.strip(), _without_backslash(lines[number - 1], line)
    return None


def _without_backslash(line: str, below: str) -> Fix[str]:
    end = line.rstrip().rstrip("\\").rstrip()

    def apply(text: str) -> str:
        return text.replace(f"{line}\n{below}", f"{end}\n{below}", 1)

    return Fix("Remove the backslash", apply)


def head_options(text: str) -> str:
    """Return the options of a cell that begins with a magic, on one line."""
    head, _ = _parted(text)
    return " ".join(join_lines(head).partition("distrain")[2].split("\n")).strip()


def join_lines(text: str) -> str:
    """Join lines that a backslash continues."""
    return re.sub(_CONTINUED, " ", text)


def _parted(text: str) -> tuple[str, str]:
    """Return the lines of the magic, and the rest of the text from the end of those lines."""
    lines, at = text.split("\n"), head_lines(text)
    head = "\n".join(lines[:at])
    return head, text[len(head) :]


def _in_head(pattern: re.Pattern[str], instead: str) -> Fix[str]:
    def apply(text: str) -> str:
        head, rest = _parted(text)
        return pattern.sub(lambda _: instead, head, count=1) + rest

    return Fix(f"Write `{instead}`", apply)
