"""A page that looks at a run is told from one that did, whatever the clock does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from distrain_nb.worker.files.folder import WATCHED_FILE
from distrain_nb.worker.supervisor.heartbeat import LOOKS_AGAIN_WITHIN_S, is_watched, note_watched

if TYPE_CHECKING:
    from pathlib import Path


def test_a_page_looks_or_did(tmp_path: Path) -> None:
    assert not is_watched(tmp_path)
    note_watched(tmp_path)
    assert is_watched(tmp_path)
    before = time.time() - 2 * LOOKS_AGAIN_WITHIN_S
    os.utime(tmp_path / WATCHED_FILE, (before, before))
    assert not is_watched(tmp_path)


def test_the_clock_goes_back_an_hour(tmp_path: Path) -> None:
    note_watched(tmp_path)
    later = time.time() + 3600
    os.utime(tmp_path / WATCHED_FILE, (later, later))
    assert not is_watched(tmp_path), "it was before the clock went back"
    note_watched(tmp_path)
    assert is_watched(tmp_path)
