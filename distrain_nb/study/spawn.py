"""Starting the process that owns a study's trials."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from distrain_nb.study.files import PROCESS_LOG

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = "distrain_nb.study"
_started: list[subprocess.Popen[bytes]] = []  # by this process, which is to reap them


def start_process(folder: Path, python: str = sys.executable) -> None:
    """Start the process that owns a study's trials, and outlives this one."""
    with (folder / PROCESS_LOG).open("ab") as log:
        process = subprocess.Popen(
            [python, "-m", PROCESS, str(folder)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started[:] = [item for item in _started if item.poll() is None]
    _started.append(process)
