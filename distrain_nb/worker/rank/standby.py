"""Processes that are forked before this rank's program begins, and wait for work.

They have imported what this rank has, PyTorch in most cases, and nothing of what the program does
since. A new process would take seconds for that import.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Mapping

from distrain_nb.worker.machine import system

_ASKED_EVERY_S = 0.02


class Standby:
    """One such process, which calls `work` with the path that it gets, and ends. Raises OSError
    where none can be forked."""

    def __init__(self, work: Callable[[Path], None]) -> None:
        self.returncode = 0
        reading, self._writing = os.pipe()
        self._pipe = os.fstat(self._writing).st_ino
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid:
            os.close(reading)
            return
        try:
            os.close(self._writing)
            system.die_with_parent(parent)
            _serve(reading, work)
        finally:
            os._exit(1)

    def start(self, path: Path, environment: Mapping[str, str], log: Path) -> None:
        """Have it work, in that environment. Raises OSError if it has gone, or the program has
        closed the pipe to it."""
        if not self._has_pipe():
            raise OSError("the pipe has gone")
        order = {"path": str(path), "environment": dict(environment), "log": str(log)}
        data = json.dumps(order).encode() + b"\n"
        while data:
            data = data[os.write(self._writing, data) :]

    def wait(self, timeout: float) -> int:
        """Wait until it has ended. Raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self.returncode = -(status & 0x7F) or status >> 8
                return self.returncode
            time.sleep(_ASKED_EVERY_S)
        raise TimeoutError

    def release(self) -> None:
        """End it, unless it works. One that was forked later has to be released too, as it has the
        pipes of those before it."""
        if self._has_pipe():
            os.close(self._writing)

    def _has_pipe(self) -> bool:
        """Return whether the descriptor is still that of the pipe: the program may have closed
        all, and opened others."""
        try:
            there = os.fstat(self._writing)
        except OSError:
            return False
        return stat.S_ISFIFO(there.st_mode) and there.st_ino == self._pipe


def can_fork() -> bool:
    """Return whether a fork has something to begin with, and no thread that it would miss."""
    try:
        threads: List[str] = os.listdir("/proc/self/task")
    except OSError:
        return False
    return "torch" in sys.modules and len(threads) == 1


def _serve(reading: int, work: Callable[[Path], None]) -> None:
    """Wait for the order, and obey. This rank's output is not that of its forks."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(reading, 1 << 16)
        if not part:
            return
        data += part
    order: Dict[str, Dict[str, str]] = json.loads(data)
    os.environ.clear()
    os.environ.update(order["environment"])
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    work(Path(str(order["path"])))
