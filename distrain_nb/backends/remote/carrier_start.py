"""The start of a carrier, and whether one may be started again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from distrain_nb.backends.remote.clock import is_recent
from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.backends.remote.sharing import CARRIER
from distrain_nb.worker.files.folder import CARRIER_LOG, LOCK_FILE

# A carrier that was just started may not have written the run's status yet.
START_AGAIN_AFTER_S = 20.0


def start_carrier(folder: Path) -> subprocess.Popen[bytes]:
    """Start the carrier of a folder's run: a process that outlives this one."""
    process = start_detached(["-m", CARRIER, str(folder)], folder / CARRIER_LOG)
    # After the start: a start that fails doesn't count, and the next look at the run may try again.
    # Two processes may start one each at a time. The file's lock lets only one carry the run.
    (folder / LOCK_FILE).touch(0o600)
    return process


def may_start(folder: Path) -> bool:
    """Return whether the last start of a carrier is long enough ago for another one."""
    try:
        last = (folder / LOCK_FILE).stat().st_mtime
    except FileNotFoundError:
        return True
    return not is_recent(last, START_AGAIN_AFTER_S)
