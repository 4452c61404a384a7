"""A study's process waits where a disk has no room, as a run does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from distrain_nb.worker.files.disk import FULL
from distrain_nb.worker.files.folder import CANCEL_FILE

PROBE_BYTES = 64 << 10
TURN_S = 0.5


def names_full_disk(text: str) -> bool:
    """Say whether an error's text names a full disk, whoever has written it.

    The words are the system's. `shutil.copytree`, and programs that fail, give no `errno`.
    """
    return any(os.strerror(code) in text for code in FULL)


def is_caused_by_full_disk(error: Exception, folder: Path) -> bool:
    """Say whether it is for lack of room that something has failed, or probably was."""
    return names_full_disk(str(error)) or not has_room(folder)


def has_room(folder: Path) -> bool:
    """Say whether a small file can be written. True where something else keeps it from that."""
    probe = folder / f"room.{os.getpid()}.draft"
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
    except OSError as error:
        return error.errno not in FULL
    finally:
        probe.unlink(missing_ok=True)
    return True


def wait_for_room(folder: Path, stop: Callable[[], None]) -> None:
    """Wait until the disk of a folder has room; call `stop` where the study is cancelled."""
    time.sleep(TURN_S)
    while not has_room(folder):
        if (folder / CANCEL_FILE).exists():
            stop()
        time.sleep(TURN_S)
