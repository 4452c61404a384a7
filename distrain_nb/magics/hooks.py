"""Prepares the first run once the notebook has imported a framework: its fork server, and what the
magic itself imports.

The kernel's cells are watched for what they ask about the world, from `%load_ext` on.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb import observed
from distrain_nb.worker.files.folder import CONFIG_FILE, home_of_runs

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_UNLOAD = "unload_ext"
_WATCHES = "watches_statements"
_numbers: dict[str, int] = {}  # of the cells whose statements were run, by their files


def start_observing(shell: InteractiveShell) -> None:
    """Watch from now on, unless the settings say `observe=off`, or this is done already."""
    if observed.observer_of(shell.user_ns) or not _is_enabled():
        return
    before = {f"Cell In[{number}]" for number in range(_executed(shell))}
    unseen = frozenset(before | sys.modules.keys() - {"__main__"})
    observed.observe(observed.Observer(shell.user_ns, partial(_place, shell), unseen))
    _watch_statements(shell)
    shell.events.register("pre_run_cell", _before_cell)
    shell.events.register("post_run_cell", _after_cell)


def stop_observing(shell: InteractiveShell) -> None:
    """Put back what was there before."""
    observed.stop()
    if hasattr(shell.run_code, _WATCHES):
        del shell.run_code
    for event, function in (("pre_run_cell", _before_cell), ("post_run_cell", _after_cell)):
        if function in shell.events.callbacks[event]:
            shell.events.unregister(event, function)


def _watch_statements(shell: InteractiveShell) -> None:
    """Look at what has changed once each statement of a cell has run."""
    run = shell.run_code

    async def run_code(code: Any, *args: Any, **kwargs: Any) -> Any:
        failed = True
        _numbers[code.co_filename] = _executed(shell) - 1
        watching = observed.observer_of(shell.user_ns)
        if watching:
            watching.runs(code)
        try:
            failed = await run(code, *args, **kwargs)
            return failed
        finally:
            watching = observed.observer_of(shell.user_ns)
            if watching:
                watching.ran(code, failed=failed)

    setattr(run_code, _WATCHES, True)
    shell.run_code = run_code


def _place(shell: InteractiveShell, file: str, line: int, below: int) -> tuple[str, int] | None:
    """Return the label of a cell, and a line of it with the empty ones that IPython leaves out."""
    number = _number(shell, file)
    if number is None:
        return None
    sources = shell.history_manager.input_hist_raw
    lines = sources[number].split("\n") if number < len(sources) else []
    first = _empty(lines)
    if below and lines[first:] and lines[first].lstrip().startswith("%%"):
        return f"Cell In[{number}]", first + 1 + _empty(lines[first + 1 :]) + below
    return f"Cell In[{number}]", first + line


def _number(shell: InteractiveShell, file: str) -> int | None:
    """Return the number of the cell that a file's name stands for; None for another file."""
    if hasattr(shell.compile, "format_code_name"):
        name = shell.compile.format_code_name(file)
        return int(name[1][3:-1]) if name else None  # In[3]
    return _numbers.get(file)  # IPython 7, as in Colab, doesn't say


def _executed(shell: InteractiveShell) -> int:
    """Return one more than the number of the cell that was stored last."""
    return len(shell.history_manager.input_hist_raw)


def _empty(lines: list[str]) -> int:
    """Return how many lines at the beginning are empty."""
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def _is_enabled() -> bool:
    try:  # to import what reads the settings takes longer than all else
        text = (home_of_runs() / CONFIG_FILE).read_text(encoding="utf-8")
        if "observe" not in text:
            return True
        from distrain_nb.config import Config

        return Config.load().observe
    except Exception:  # no settings, or some that whoever needs them complains of
        return True


def _before_cell(info: Any = None) -> None:
    from IPython import get_ipython

    shell = get_ipython()
    watching = observed.observer_of(shell.user_ns)
    if watching:
        if _executed(shell) == 1:
            watching.settings.find()
        watching.begin(f"Cell In[{_executed(shell)}]")
    if _UNLOAD in str(getattr(info, "raw_cell", "")):  # else IPython says that it isn't loaded
        shell.extension_manager.loaded.add("distrain_nb")


def _after_cell(_: object = None) -> None:
    from IPython import get_ipython

    watching = observed.observer_of(get_ipython().user_ns)
    if watching:
        watching.end()


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
