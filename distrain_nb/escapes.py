"""Escape sequences that programs write to a terminal: colours pass, everything else is left out.

`COLOUR` and `CONTROL` are the two patterns; `page/src/log/ansi.js` and, for bytes,
`run/log/expression.py` have the same.
"""

from __future__ import annotations

import re

COLOUR = r"\x1b\[([0-9;:]*)m"
CONTROL = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # the cursor, the screen, its modes
    # Titles, links, the clipboard: up to their end. One without an end loses its beginning alone.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"  # resets, character sets
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # by themselves, and a lone escape
)
_COLOUR = re.compile(COLOUR)
_EITHER = re.compile(f"{COLOUR}|{CONTROL}")
RESET = "\x1b[0m"


def plain(text: str) -> str:
    """Return the text alone."""
    return _EITHER.sub("", text)


def coloured(text: str) -> str:
    """Return the text with its colours, which end with it."""
    shown = _EITHER.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)
    return f"{shown}{RESET}" if "\x1b" in shown else shown
