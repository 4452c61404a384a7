"""The words and numbers of a study's text: `adam`, `1e-05`, and `"16"`, which is a word."""

from __future__ import annotations

import json
import math
import re

from distrain_nb.errors import OptionError, shown
from distrain_nb.tuning.spec import Value

QUOTED = r'"(?:[^"\\]|\\.)*"'
# What separators are not looked for in: a quoted word, or a condition in brackets.
_BRACKETED = rf'{QUOTED}|\[(?:[^\]"]|{QUOTED})*\]'
_CLOSED = re.compile(rf'(?:[^"\[]|{_BRACKETED})*', re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BARE = re.compile(r"[\w.+/-]+")
_SIGNS = re.compile(r'["\[\]=|,:\s]')
_EXACT = 2**53  # up to which whole numbers are floats without loss


def parts(text: str, separator: str, most: int = -1) -> list[str]:
    """Return the text between separators that are neither quoted nor in brackets, `most` times
    split.

    Raises OptionError for a quote or a bracket that isn't closed.
    """
    _check_closed(text)
    texts: list[str] = []
    begin = 0
    for step in re.finditer(rf"{_BRACKETED}|{re.escape(separator)}", text, re.DOTALL):
        if step[0] == separator and len(texts) != most:
            texts.append(text[begin : step.start()])
            begin = step.end()
    return [*texts, text[begin:]]


def _check_closed(text: str) -> None:
    """Look through the text once, which a search for what is closed would do at each sign."""
    closed = _CLOSED.match(text)
    end = closed.end() if closed else 0
    if end < len(text):
        raise OptionError(
            f"{text[end]} isn't closed in {shown(text[end:])}: write words that have one in double "
            "quotes"
        )


def is_number(text: str) -> bool:
    """Return whether a text is a number as people write it."""
    return _NUMBER.fullmatch(text) is not None


def number(text: str) -> int | float:
    """Return a number, whole if it is written as one. Raises OptionError for anything else, and for
    one that is larger than any float."""
    text = text.strip()
    if not is_number(text) or math.isinf(float(text)):
        raise OptionError(f"invalid number {shown(text)}")
    return int(text) if _INTEGER.fullmatch(text) else float(text)


def word(text: str) -> str:
    """Return a word without its quotes. Raises OptionError for signs outside of quotes."""
    text = text.strip()
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            raise OptionError(
                f"invalid word {shown(text)}: expected one in double quotes"
            ) from None
    if not text or _SIGNS.search(text):
        raise OptionError(f"invalid word {shown(text)}: put it in double quotes")
    return text


def value(text: str) -> Value:
    """Return a number where it looks like one, else a word."""
    return number(text) if is_number(text.strip()) else word(text)


def value_text(value: Value) -> str:
    """Write a value so that it reads back as itself."""
    if not isinstance(value, str):
        return written_number(value)
    bare = _BARE.fullmatch(value) and ".." not in value and not is_number(value)
    return value if bare else json.dumps(value, ensure_ascii=False)


def written_number(value: float) -> str:
    """Return a number, a whole one without its point."""
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < _EXACT)
    return str(int(value)) if is_whole else repr(value)
