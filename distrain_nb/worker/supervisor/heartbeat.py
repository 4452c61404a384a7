"""Heartbeats of pages and kernels that look at a run: files in its folder, touched meanwhile.

A kernel hears nothing of the page while its cell runs, and need not send it a log that the page has
from its server.
"""

from __future__ import annotations

import time
from pathlib import Path

from distrain_nb.worker.files.folder import DRAWN_FILE, WATCHED_FILE

# A page looks each second, or more often, and misses no more than this when it is slow.
LOOKS_AGAIN_WITHIN_S = 5.0


def note_watched(folder: Path) -> None:
    """Note that a page's server is looking at the run right now."""
    (folder / WATCHED_FILE).touch()


def is_watched(folder: Path) -> bool:
    """Return whether a page looked a moment ago, by its server."""
    return _beats(folder / WATCHED_FILE)


def note_drawn(folder: Path) -> None:
    """Note that a page draws the charts of the run, as its server gives them.

    One without our extension for JupyterLab has the log of a widget from the server, and its charts
    from the kernel.
    """
    (folder / DRAWN_FILE).touch()


def is_drawn(folder: Path) -> bool:
    """Return whether a page had charts from its server a moment ago."""
    return _beats(folder / DRAWN_FILE)


def _beats(path: Path) -> bool:
    try:
        looked = path.stat().st_mtime
    except OSError:
        return False
    return abs(time.time() - looked) < LOOKS_AGAIN_WITHIN_S  # the clock may have gone back
