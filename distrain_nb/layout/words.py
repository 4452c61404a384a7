"""Words of a line of options: splitting, quoting, and the head of a cell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from distrain_nb.errors import OptionError, shown
from distrain_nb.layout.yaml_reading import check_length
from distrain_nb.repairs import join_lines

_PLAIN = re.compile(r"[\w@%+=:,./*?-]+")
_WIDTH = 79
_LONGEST_LINE = 20_000  # the time to split a line grows with the square of a word's length


def words_of(text: str) -> list[str]:
    """Return the words of a line without quotes.

    Raises OptionError if a quote is not closed, or if the line is too long to split.
    """
    check_length(text, "lines of options", _LONGEST_LINE)
    try:
        return shlex.split(join_lines(text))
    except ValueError as error:
        raise OptionError(f"invalid options {shown(text)}: {error}") from None


def quoted(text: str) -> str:
    """Return a word with the quotes that the magic needs to read it."""
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


def heading(options: Iterable[str], script: Sequence[str] = ()) -> str:
    """Return the head of a cell with these options.

    With *script*, a path and arguments, it is the line that runs the script. If one line is too
    long, each option gets a line.
    """
    run = " ".join(map(quoted, script))
    words = ["%distrain run", *options, run] if run else ["%%distrain", *options]
    line = " ".join(words)
    return line if len(line) <= _WIDTH else " \\\n    ".join([" ".join(words[:2]), *words[2:]])
