"""A warm process that has the frameworks imported and forks each run from itself.

It never runs user code, never touches CUDA and is nobody's kernel, so that what it forks is as
clean as a new interpreter. `python -m distrain_nb.worker.forkserver SOCKET IDLE FOLDER` serves the
run in FOLDER, and then those whose folders are sent to SOCKET, until it has been idle for IDLE
seconds.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import List, Set

from distrain_nb.worker import system
from distrain_nb.worker.launch import Launch
from distrain_nb.worker.status import CANCEL_FILE, Owner, State, Status
from distrain_nb.worker.supervisor import Supervisor

TURN_S = 1.0
SUPERVISOR_LOG = "supervisor.log"


def send(address: Path, folder: Path) -> bool:
    """Ask the server at that address to run `folder`; say whether there was one to ask."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        connection.sendall(os.fsencode(str(folder)) + b"\n")
        return connection.recv(1) == b"."


class ForkServer:
    """Listens at `address` and forks a supervisor for each run that it is sent."""

    def __init__(self, address: Path, idle: float) -> None:
        self._address = address
        self._idle = idle
        self._imported: Set[str] = set()
        self._runs: List[int] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(address))
        self._listener.listen(64)
        self._listener.settimeout(TURN_S)

    def serve(self, first: Path) -> None:
        """Serve until nothing has run and nobody has asked for a while."""
        self._take(first)
        idle_since = time.monotonic()
        while time.monotonic() - idle_since < self._idle and self._address.exists():
            asked = self._turn()
            if asked or self._reap():
                idle_since = time.monotonic()

    def close(self) -> None:
        self._listener.close()
        if self._address.exists():
            self._address.unlink()

    def _turn(self) -> bool:
        try:
            connection, _ = self._listener.accept()
        except socket.timeout:
            return False
        with connection, connection.makefile("rb") as lines:
            folder = Path(os.fsdecode(lines.readline().rstrip(b"\n")))
            connection.sendall(b".")
        self._take(folder)
        return True

    def _reap(self) -> bool:
        """Say whether a run is still alive."""
        self._runs = [pid for pid in self._runs if os.waitpid(pid, os.WNOHANG)[0] == 0]
        return bool(self._runs)

    def _take(self, folder: Path) -> None:
        try:
            self._preload(folder)
            self._runs.append(self._fork(folder))
        except Exception:
            _give_up(folder)

    def _preload(self, folder: Path) -> None:
        missing = [name for name in Launch.read(folder).preload if name not in self._imported]
        for name in missing:
            if (folder / CANCEL_FILE).exists():
                return
            status = Status.read(folder).enter(State.STARTING, "importing %s" % name)
            replace(status, supervisor=Owner.of(os.getpid())).write(folder)
            try:
                importlib.import_module(name)
            except BaseException:  # the rank's own import will say what is wrong
                pass
            self._imported.add(name)
        if missing:
            gc.collect()
            gc.freeze()

    def _fork(self, folder: Path) -> int:
        pid = os.fork()
        if pid == 0:
            self._listener.close()
            supervise(folder)
        return pid


def supervise(folder: Path) -> None:
    """Be the supervisor of that run: does not return."""
    try:
        os.setsid()
        system.give_way()
        system.name_process("distrain run")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _redirect_to(folder / SUPERVISOR_LOG)
        Supervisor(folder).run()
    except BaseException:
        traceback.print_exc()
        _give_up(folder)
    finally:
        os._exit(0)


def _redirect_to(path: Path) -> None:
    log = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _give_up(folder: Path) -> None:
    text = "the run's supervisor failed:\n%s" % traceback.format_exc()
    Status.read(folder).enter(State.FAILED, "failed", error=text).write(folder)


def main(address: Path, idle: float, folder: Path) -> None:
    """Serve at `address`, unless another server does: then hand it the run."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the current folder, whose modules are no frameworks
    with open(str(address) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if send(address, folder):
            return
        if address.exists():
            address.unlink()
        server = ForkServer(address, idle)
    try:
        server.serve(folder)
    finally:
        server.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
