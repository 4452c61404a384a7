"""Starting the process that owns a study's trials."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.study.files import PROCESS_LOG

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = "distrain_nb.study"


def start_process(folder: Path, python: str = sys.executable) -> None:
    """Start the process that owns a study's trials, and outlives this one."""
    start_detached(["-m", PROCESS, str(folder)], folder / PROCESS_LOG, python, cwd="/")
