"""Answers for agents: short, in whole lines, without escapes and without secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from distrain_nb.escapes import plain
from distrain_nb.secrets import Guard
from distrain_nb.worker.files.folder import PROGRAM_FOLDER

if TYPE_CHECKING:
    from distrain_nb.run import Run

LONGEST_ANSWER = 16_000  # characters: about 4,000 tokens
LONGEST_LINE = 400
_HEAD = 300  # characters that stand around the lines of an answer

# Signs that no reader sees, or that turn a line around: an answer spells them out.
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_BREAKS = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")


def one_line(text: str) -> str:
    """Return the text in a line: a name with a line break would forge another one."""
    return _BREAKS.sub(r"\\n", text)


def cut(text: str, *, lines: bool = False) -> str:
    """Return the text without escapes, and without what makes a line too long; in one line unless
    it is a text of `lines`."""
    text = plain(text if lines else one_line(text))
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]}… ({len(text) - LONGEST_LINE:,} characters more)"


def finished(
    parts: Sequence[str], run: Run | None = None, hint: str = "", *, from_both: bool = False
) -> str:
    """Return the answer within its limit, without escapes and secrets; it says how many characters
    are left out, at the end or else in the middle."""
    text = _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", plain("\n".join(parts)))
    guard = Guard.of_run(run.folder / PROGRAM_FOLDER) if run else Guard()
    text = guard.line(text)
    if len(text) <= LONGEST_ANSWER:
        return text
    room = LONGEST_ANSWER - _HEAD
    note = f"\n… {len(text) - room:,} characters left out{hint}"
    if not from_both:
        return f"{text[:room]}{note}"
    return f"{text[: room // 2]}{note} …\n{text[-room // 2 :]}"


def fitting(lines: Sequence[str], from_end: bool = False) -> list[str]:
    """Return the first lines, or the last, that an answer has room for; one at least."""
    chosen: list[str] = []
    room = LONGEST_ANSWER - _HEAD
    for line in lines[::-1] if from_end else lines:
        room -= len(line) + 1
        if room < 0 and chosen:
            break
        chosen.append(line)
    return chosen[::-1] if from_end else chosen
