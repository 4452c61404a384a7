"""Prepares the first run once the notebook has imported a framework: its fork server, and what the
magic itself imports."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path

# Those that take seconds to import.
_SLOW = frozenset(["torch", "tensorflow"])
_IMPORT = r"(?m)^[ \t]*(?:import|from)[ \t]+(torch|tensorflow)\b"
_ELSEWHERE = ("--on", "--dry-run", "--help", "-h")
_requested: set[str] = set()

# What a cell needs from `%%distrain` until its run is shown.
_OURS = ("distrain_nb.magics.cell", "distrain_nb.places.local.backend", "distrain_nb.ui.monitor")


def before_cell(words: list[str], cell: str) -> None:
    """Have the fork server import a framework while the cell that needs it is still being read."""
    named = tuple(dict.fromkeys(re.findall(_IMPORT, cell)))
    if not named or _requested.issuperset(named) or any(w.startswith(_ELSEWHERE) for w in words):
        return
    from distrain_nb.places.local.warming import warm
    from distrain_nb.worker.files.request import Warming
    from distrain_nb.worker.files.status import Owner

    with suppress(Exception):  # the run to come says what is wrong
        warm(Warming(Owner.of(os.getpid()), named))
        _requested.update(named)


def after_cell(_: object = None) -> None:
    """Have the fork server import what a cell has imported, once, without waiting for it."""
    with suppress(Exception):
        from distrain_nb.worker.files.launch import FORK_SAFE, IMPORTED_BY

        of_libraries = (name for names in IMPORTED_BY.values() for name in names)
        names = dict.fromkeys((*FORK_SAFE, *of_libraries))
        loaded = [name for name in names if sys.modules.get(name) is not None]
        if _SLOW.isdisjoint(loaded) or _requested.issuperset(loaded):
            return
        first = not _requested
        _requested.update(loaded)
        _start(loaded)
        if first:
            threading.Thread(target=_import_ours, daemon=True).start()


def _import_ours() -> None:
    """Give way to what the notebook computes meanwhile, and leave errors to the first use."""
    with suppress(Exception):
        from distrain_nb.config import Config
        from distrain_nb.worker.machine import system

        system.lower_thread()
        for name in _OURS if Config.load().warm else ():
            importlib.import_module(name)


def _start(modules: list[str]) -> None:
    import subprocess  # 3 ms, which `%load_ext` needn't take

    from distrain_nb.worker.files.request import Warming
    from distrain_nb.worker.files.status import Owner

    words = Warming(Owner.of(os.getpid()), tuple(modules)).words()
    subprocess.Popen(
        [sys.executable, "-m", "distrain_nb.places.local.warming", str(Path.cwd()), *words],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
