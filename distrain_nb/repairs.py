"""Repairs of a cell's text, from its `%%distrain` line on, as a finding about the cell offers them.

A repair finds its place by what stands there, so that it does for a cell that was edited since.
Where there is nothing to repair any more it leaves the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from distrain_nb.findings import Fix

MAGICS = ("%%distrain", "%distrain")
# Patterns that `re` compiles when they are used: `%load_ext` imports this.
_RUN = r"\s*%distrain\s+run(?!\S)"
_CONTINUED = r"\\[ \t]*(?:\n[ \t]*|\Z)"
# None of them begins a line of Python, save for a name with signs before it.
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
    """Insert an option before the program's arguments: behind a script they begin at once, in a
    cell behind ` -- `."""
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
    """Return a cell's text with an option as it is `written`, in the place of what has one of the
    names; without it where nothing is written."""
    head, rest = _parted(text)
    if _option_pattern(names).search(head):
        head = _option_pattern(names).sub(lambda _: written, head, count=1)
        return f"{head if written else head.replace('  ', ' ').rstrip()}{rest}"
    return add_option(written).apply(text) if written else text


def with_each(text: str, name: str, written: Sequence[str | None]) -> str:
    """Return a cell's text with an option that is there several times: each in its turn as it is
    `written`, as it was for None, gone for an empty text; and what is more than there are."""
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
    """Return an option with its value."""
    any_name = "|".join(map(re.escape, names))
    return re.compile(rf"(?<!\S)(?:{any_name})(?:=|\s+)(?:'[^']*'|\"[^\"]*\"|\S+)")


def write_name(name: str, instead: str) -> Fix[str]:
    """Replace a name in the cell's code, wherever it is no attribute."""

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
    """Return how many lines the magic's options take; 0 where there is no magic. They go on after a
    backslash at a line's end, and in lines that begin with an option."""
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if line.lstrip().startswith(MAGICS)), -1) + 1
    while 0 < at < len(lines) and _goes_on(lines[at - 1], lines[at]):
        at += 1
    return at


def _goes_on(line: str, below: str) -> bool:
    return line.rstrip().endswith("\\") or re.match(_OPTION, below) is not None


def code_in_head(text: str) -> tuple[str, Fix[str]] | None:
    """Return the first line that the backslash above it makes one of options, though it can be
    none, and what leaves it to the code."""
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
    """Return the options of a cell that begins with its magic, on one line."""
    head, _ = _parted(text)
    return " ".join(join_lines(head).partition("distrain")[2].split("\n")).strip()


def join_lines(text: str) -> str:
    """Join lines that a backslash continues."""
    return re.sub(_CONTINUED, " ", text)


def _parted(text: str) -> tuple[str, str]:
    """Return the magic's line, and the rest with the end of that line."""
    lines, at = text.split("\n"), head_lines(text)
    head = "\n".join(lines[:at])
    return head, text[len(head) :]


def _in_head(pattern: re.Pattern[str], instead: str) -> Fix[str]:
    def apply(text: str) -> str:
        head, rest = _parted(text)
        return pattern.sub(lambda _: instead, head, count=1) + rest

    return Fix(f"Write `{instead}`", apply)
