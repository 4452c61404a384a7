"""Runs code in a copy of this process, so that what it does there isn't done here."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import select
import signal
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from distrain_nb.observed import stop
from distrain_nb.observed.clock import waited_s

if TYPE_CHECKING:
    from collections.abc import Callable


def in_fork(work: Callable[[], Any], limit_s: float) -> Any:
    """Return what a function gives in a fork of this process; None if that doesn't answer in time,
    dies, or can't be started. What the function gives must be picklable, and prints nothing."""
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 and JAX warn of forks beside threads. The child starts none, and a lock
            # that a thread holds for ever in the child only costs the time limit.
            warnings.simplefilter("ignore")
            child = os.fork()
    except OSError:  # no memory, or too many processes
        os.close(reading)
        os.close(writing)
        return None
    if not child:
        os.close(reading)
        _answer(work, writing)
    os.close(writing)
    try:
        answer = _read(reading, child, limit_s)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # somebody who waits for any child has it
            os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None


def _answer(work: Callable[[], Any], writing: int) -> NoReturn:
    """Write what a function gives, and end this process without its destructors and `atexit`."""
    try:
        signal.set_wakeup_fd(-1)  # which the parent's event loop reads
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        stop()
        gc.disable()  # what the notebook has dropped ends there, not here
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        set_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
        if set_threads:  # the parent's threads are not in the child, which would wait for them
            set_threads(1)
        data = pickle.dumps(work())
        with os.fdopen(writing, "wb") as file:
            file.write(data)
    finally:
        os._exit(0)


def _read(reading: int, child: int, limit_s: float) -> bytes:
    """Return what a pipe gives until its end; nothing if that comes too late. What a busy machine
    makes the child wait isn't counted, up to twice the limit."""
    parts: list[bytes] = []
    begin = time.monotonic()
    while True:
        limit = limit_s + min(waited_s(child), 2 * limit_s)
        left = begin + limit - time.monotonic()
        if left <= 0:
            return b""
        ready, _, _ = select.select([reading], [], [], left)
        part = os.read(reading, 2**16) if ready else b""
        if ready and not part:
            return b"".join(parts)
        parts.append(part)
