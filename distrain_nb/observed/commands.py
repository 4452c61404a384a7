"""Commands that the notebook runs, and what their text asks about the world."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.launcher_variables import asked_variable

if TYPE_CHECKING:
    from collections.abc import Iterable


_MOST_WORDS = 64  # of a command that may name a script
_MOST_OF_SCRIPT = 2**18  # bytes: what a command runs is read for the variables that it names


def asked_by_command(command: Any) -> str:
    """Return how a command asks for a launcher's variable that it, or a script that it runs, names;
    empty for any other."""
    parts: Iterable[Any] = command if isinstance(command, (list, tuple)) else (command,)
    texts = [*map(_word_text, parts)]
    texts += [_script(word) for text in texts[:_MOST_WORDS] for word in text.split()[:_MOST_WORDS]]
    words = (word for text in texts for word in re.findall(r"\w+", text))
    return next(filter(None, map(asked_variable, words)), "")


def _script(word: str) -> str:
    """Return the text of a script that a word of a command names; empty for any other word."""
    try:
        path = Path(word) if word.endswith((".py", ".sh")) else None
        if path is None or not path.is_file():  # to open a pipe would wait for who writes it
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_OF_SCRIPT).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _word_text(part: Any) -> str:
    part = os.fspath(part) if hasattr(part, "__fspath__") else part
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)
