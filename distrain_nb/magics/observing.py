"""The cells of the kernel are watched for what they ask about the world, from `%load_ext` on."""

from __future__ import annotations

import sys
from functools import partial
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
