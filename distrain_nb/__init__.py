"""A training cell becomes a distributed training job.

This module travels with the worker into containers, so it is standard library only, runs on
Python 3.8, and imports a name's module when the name is first used.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.api import check, compare, plan, runs, script, submit
    from distrain_nb.api.executor import Executor, remote
    from distrain_nb.api.sessions import session, sessions
    from distrain_nb.health import doctor
    from distrain_nb.run import Run
    from distrain_nb.study import Study, attach, studies, tune
    from distrain_nb.ui.export import export
    from distrain_nb.ui.form import form
    from distrain_nb.worker.metrics.step_times import timed
    from distrain_nb.worker.metrics.writer import log_metrics
    from distrain_nb.worker.rank.stopping import on_stop, stopping

__version__ = "1.0.0rc1"

_HOMES = {
    "Executor": "distrain_nb.api.executor",
    "Run": "distrain_nb.run",
    "Study": "distrain_nb.study",
    "attach": "distrain_nb.study",
    "check": "distrain_nb.api",
    "compare": "distrain_nb.api",
    "doctor": "distrain_nb.health",
    "plan": "distrain_nb.api",
    "remote": "distrain_nb.api.executor",
    "runs": "distrain_nb.api",
    "script": "distrain_nb.api",
    "session": "distrain_nb.api.sessions",
    "sessions": "distrain_nb.api.sessions",
    "studies": "distrain_nb.study",
    "submit": "distrain_nb.api",
    "tune": "distrain_nb.study",
    "export": "distrain_nb.ui.export",
    "form": "distrain_nb.ui.form",
    "log_metrics": "distrain_nb.worker.metrics.writer",
    "timed": "distrain_nb.worker.metrics.step_times",
    "on_stop": "distrain_nb.worker.rank.stopping",
    "stopping": "distrain_nb.worker.rank.stopping",
}
# Where ranks run, and what they spawn, a function is the function itself.
_IN_A_RUN = {"DISTRAIN_PROGRAM", "DISTRAIN_RUN_FOLDER"}

__all__ = [
    "Executor",
    "Run",
    "Study",
    "__version__",
    "attach",
    "check",
    "compare",
    "doctor",
    "export",
    "form",
    "log_metrics",
    "on_stop",
    "plan",
    "remote",
    "runs",
    "script",
    "session",
    "sessions",
    "stopping",
    "studies",
    "submit",
    "timed",
    "tune",
]

if not TYPE_CHECKING:  # or checkers would take any name for one that is here

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        if name == "remote" and _IN_A_RUN & os.environ.keys():
            return _as_it_is
        return getattr(importlib.import_module(_HOMES[name]), name)


def _as_it_is(function: Any = None, **options: Any) -> Any:  # noqa: ARG001
    """Return the decorator `remote` where ranks run, with or without options."""
    return (lambda item: item) if function is None else function


def __dir__() -> "list[str]":
    return sorted([*globals(), *_HOMES])


def load_ipython_extension(shell: Any) -> None:
    """Register the magics in the shell; `%load_ext distrain_nb` calls this."""
    from distrain_nb.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo all changes to the user's process; `%unload_ext distrain_nb` calls this."""
    from distrain_nb.magics.observing import stop_observing

    stop_observing(shell)
