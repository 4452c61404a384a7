"""Futures of runs: one thread looks after all that are waited for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.run.run import Run

LOOK_EVERY_S = 0.05

_lock = threading.Lock()
_waiting: list[tuple[Run, Future[Any]]] = []


def future_of(run: Run) -> Future[Any]:
    """A future that is running now, and has the run's result or exception when it has ended."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    with _lock:
        _waiting.append((run, future))
        if len(_waiting) == 1:
            threading.Thread(target=_look, name="distrain futures", daemon=True).start()
    return future


def _look() -> None:
    """Until nothing is waited for. Callbacks may ask for futures, so none runs under the lock."""
    while True:
        with _lock:
            waiting = list(_waiting)
        settled = [future for run, future in waiting if _settle(run, future)]
        with _lock:
            _waiting[:] = [each for each in _waiting if each[1] not in settled]
            if not _waiting:
                return
        time.sleep(LOOK_EVERY_S)


def _settle(run: Run, future: Future[Any]) -> bool:
    """Whether the run has ended; its future is complete then."""
    try:
        if not run.done():
            return False
        result = run.result()
    except BaseException as wrong:
        future.set_exception(wrong)
    else:
        future.set_result(result)
    return True
