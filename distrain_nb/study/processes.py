"""The processes of a study: the one that owns its trials, and the one that tells of its end."""

from __future__ import annotations

import sys
from pathlib import Path

from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.study.files import PROCESS_LOG

PROCESS = "distrain_nb.study"
NOTICES = "distrain_nb.study.notices"  # the process that tells of the end


def start_process(folder: Path, python: str = sys.executable) -> None:
    """Start the process that owns a study's trials, and outlives this one."""
    start_detached(["-m", PROCESS, str(folder)], folder / PROCESS_LOG, python, cwd="/")
