"""A negative cache: who has not answered is not asked again at once, so that a silent service slows
nothing."""

from __future__ import annotations

import time
from collections.abc import Hashable

AGAIN_S = 300.0

_failures: dict[Hashable, float] = {}


def note_failure(of: Hashable) -> None:
    """Note that nobody answers, or not to us."""
    _failures[of] = time.monotonic()


def has_failed(of: Hashable) -> bool:
    """Return whether nobody has answered within the last minutes."""
    return of in _failures and time.monotonic() < _failures[of] + AGAIN_S
