"""The words and numbers of a study's text: `adam`, `1e-05`, and `"16"`, which is a word."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError, shown

if TYPE_CHECKING:
    from distrain_nb.tuning.spec import Value

QUOTED = r'"(?:[^"\\]|\\.)*"'
# One step through a text: a quoted word, a condition in brackets, or a character.
_STEP = re.compile(rf'{QUOTED}|\[(?:[^\]"]|{QUOTED})*\]|.', re.DOTALL)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BARE = re.compile(r"[\w.+/-]+")
_SIGNS = re.compile(r'["\[\]=|,:\s]')
_EXACT = 2**53  # up to which whole numbers are floats without loss


def parts(text: str, separator: str, most: int = -1) -> list[str]:
    """The text between separators that are neither quoted nor in brackets, `most` times split."""
    found = [""]
    for step in _STEP.findall(text):
        if step == separator and len(found) != most + 1:
            found.append("")
        else:
            found[-1] += step
    return found


def is_number(text: str) -> bool:
    """Whether a text is a finite number as people write it."""
    return _NUMBER.fullmatch(text) is not None


def number(text: str) -> int | float:
    """A number, whole if it is written as one. Raises OptionError for anything else."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    if not is_number(text):
        raise OptionError(f"invalid number {shown(text)}")
    return float(text)


def word(text: str) -> str:
    """A word without its quotes. Raises OptionError for signs outside of quotes."""
    text = text.strip()
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            raise OptionError(f"invalid word {text}: expected one in double quotes") from None
    if not text or _SIGNS.search(text):
        raise OptionError(f"invalid word {shown(text)}: write such a word in double quotes")
    return text


def value(text: str) -> Value:
    """A number where it looks like one, else a word."""
    return number(text) if is_number(text.strip()) else word(text)


def written(value: Value) -> str:
    """What `value` reads back."""
    if not isinstance(value, str):
        return written_number(value)
    bare = _BARE.fullmatch(value) and ".." not in value and not is_number(value)
    return value if bare else json.dumps(value, ensure_ascii=False)


def written_number(value: float) -> str:
    """A number, a whole one without its point."""
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < _EXACT)
    return str(int(value)) if whole else repr(value)
