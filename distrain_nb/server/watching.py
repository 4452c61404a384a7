"""Whether a page has a run's log from the server, so that the kernel need not send it too.

A file in the run's folder tells, since a kernel hears nothing of the page while its cell runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WATCHED_FILE = "watched"
# A page looks several times a second, and misses no more than this when it is slow.
LOOKS_AGAIN_WITHIN_S = 5.0


def note_watched(folder: Path) -> None:
    """A page looks at the run right now."""
    (folder / WATCHED_FILE).touch()


def is_watched(folder: Path) -> bool:
    """Whether a page did so a moment ago."""
    try:
        looked = (folder / WATCHED_FILE).stat().st_mtime
    except FileNotFoundError:
        return False
    return abs(time.time() - looked) < LOOKS_AGAIN_WITHIN_S  # the clock may have gone back
