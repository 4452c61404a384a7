"""Text that is kept or shown: without the secrets that may be in it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from distrain_nb.secrets.forms import unprefixed
from distrain_nb.secrets.guard import HIDDEN
from distrain_nb.secrets.prefixes import prefixed

if TYPE_CHECKING:
    from collections.abc import Iterable

# A value as short as `1` is no secret, and stands everywhere.
_SHORTEST = 4


def redacted(text: str, values: Iterable[str] = ()) -> str:
    """The text without these values, and without the rest of each line from where it looks like a
    secret; of a private key, without all that follows."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    data = text.encode(errors="backslashreplace")
    for match in sorted(chain(prefixed(data), unprefixed(data, ".py")), reverse=True):
        end = -1 if match.kind == "a private key" else data.find(b"\n", match.start)
        data = data[: match.start] + HIDDEN.encode() + (data[end:] if end >= 0 else b"")
    return data.decode()
