"""When the notebook has imported a framework, the first run's fork server is made ready."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from distrain_nb.worker.fork_safe import FORK_SAFE

# Those that take seconds to import.
_SLOW = frozenset(["torch", "tensorflow"])
_asked: set[str] = set()


def after_cell(_: object = None) -> None:
    """Called when a cell has ended. Each framework is asked for once; nothing is waited for."""
    with suppress(Exception):
        loaded = [name for name in FORK_SAFE if sys.modules.get(name) is not None]
        if _SLOW.isdisjoint(loaded) or _asked.issuperset(loaded):
            return
        _asked.update(loaded)
        _start(loaded)


def _start(modules: list[str]) -> None:
    from distrain_nb.worker.request import Warming
    from distrain_nb.worker.status import Owner

    words = Warming(Owner.of(os.getpid()), tuple(modules)).words()
    subprocess.Popen(
        [sys.executable, "-m", "distrain_nb.backends.local.warming", str(Path.cwd()), *words],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
