"""Small things that the messages of Google's clients leave to do."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from typing import Any, TypeVar

M = TypeVar("M")


def copied(message: M) -> M:
    """The message as it is now, apart from the one that goes on changing."""
    return copy.deepcopy(message)


def now() -> Any:
    """What a field for a time takes."""
    return datetime.now(timezone.utc)
