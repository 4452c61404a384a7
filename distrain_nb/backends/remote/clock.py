"""What was lately, by a clock that may have been set back since."""

from __future__ import annotations

import time


def is_recent(moment: float, within_s: float, now: float | None = None) -> bool:
    """Return whether that (seconds since the epoch) was less than so long ago. What is further
    ahead than that was not: the clock has gone back since, and by how much nobody knows."""
    return abs((time.time() if now is None else now) - moment) < within_s
