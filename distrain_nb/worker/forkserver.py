"""A warm process that has the frameworks imported and forks each run from itself.

It never runs user code, never touches CUDA and is nobody's kernel, so that what it forks is as
clean as a new interpreter. `python -m distrain_nb.worker.forkserver SOCKET IDLE FOLDER ANSWER`
serves the run in FOLDER, whose client reads the pipe ANSWER, and then those that are sent to
SOCKET, until it has been idle for IDLE seconds.
"""

from __future__ import annotations

import errno
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
from typing import Dict, Set

from distrain_nb.worker import failure, system
from distrain_nb.worker.launch import Launch
from distrain_nb.worker.request import TAKEN, Request, listen, receive, send
from distrain_nb.worker.status import CANCEL_FILE, Owner, State, Status
from distrain_nb.worker.supervisor import Supervisor, exit_status

TURN_S, TURN_WITH_RUNS_S = 1.0, 0.1
SUPERVISOR_LOG = "supervisor.log"


class ForkServer:
    """Listens at `address` and forks a supervisor for each run that it is sent."""

    def __init__(self, address: Path, idle: float) -> None:
        self._address = address
        self._idle = idle
        self._imported: Set[str] = set()
        self._runs: Dict[int, Path] = {}
        self._listener = listen(address)
        self._place = os.stat(str(address)).st_ino

    def serve(self, first: Request) -> None:
        """Serve until nothing has run and nobody has asked for a while.

        Raises OSError when a run has ended and that can't be written down: readers take a run
        whose server has ended for failed.
        """
        self._take(first)
        idle_since = time.monotonic()
        while time.monotonic() - idle_since < self._idle and self._in_place():
            asked = self._turn()
            if asked or self._reap():
                idle_since = time.monotonic()

    def close(self) -> None:
        """Whoever has asked meanwhile finds that nobody answers, and starts another."""
        if self._in_place():
            self._address.unlink()
        self._listener.close()

    def _in_place(self) -> bool:
        try:
            return os.stat(str(self._address)).st_ino == self._place
        except FileNotFoundError:
            return False

    def _turn(self) -> bool:
        self._listener.settimeout(TURN_WITH_RUNS_S if self._runs else TURN_S)
        try:
            request = receive(self._listener)
        except socket.timeout:
            return False
        if request is not None:
            self._take(request)
        return request is not None

    def _reap(self) -> bool:
        """Say whether a run is still alive."""
        for pid, folder in list(self._runs.items()):
            ended, wait_status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._runs[pid]
                _see_to_its_end(folder, pid, wait_status)
        return bool(self._runs)

    def _take(self, request: Request) -> None:
        folder = request.folder
        try:
            status = Status.read(folder)
            replace(status, supervisor=Owner.of(os.getpid())).write(folder)
        except Exception as error:
            request.reply(str(error))
            return
        request.reply(TAKEN)
        try:
            self._preload(folder)
            self._runs[self._fork(folder)] = folder
        except Exception as error:
            _give_up(folder, _in_words(error))

    def _preload(self, folder: Path) -> None:
        missing = [name for name in Launch.read(folder).preload if name not in self._imported]
        for name in missing:
            if (folder / CANCEL_FILE).exists():
                return
            Status.read(folder).enter(State.STARTING, "importing %s" % name).write(folder)
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
    except BaseException as error:
        traceback.print_exc()
        os.closerange(3, 4096)  # there may be no descriptor left to say it with
        _give_up(folder, _in_words(error))
    finally:
        os._exit(0)


def _in_words(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return "failed:\n%s" % traceback.format_exc()
    way_out = "; `ulimit -n` says how many there may be" if error.errno == errno.EMFILE else ""
    return "could not go on: %s%s" % (error, way_out)


def _redirect_to(path: Path) -> None:
    log = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _see_to_its_end(folder: Path, pid: int, wait_status: int) -> None:
    """A supervisor has ended: if it could not say how the run did, say that."""
    try:
        if Status.read(folder).state.final:
            return
    except Exception:  # deleted, or broken: then there is nothing to say, or more
        pass
    system.kill_session(pid)
    _give_up(folder, failure.describe_exit(exit_status(wait_status)))


def _give_up(folder: Path, why: str) -> None:
    try:
        status = Status.read(folder)
    except (ValueError, KeyError, TypeError):
        status = Status(State.STARTING)
    except FileNotFoundError:
        return
    try:
        failed = status.enter(State.FAILED, "failed", error="the run's supervisor %s" % why)
        failed.write(folder)
    except FileNotFoundError:  # the run has been deleted meanwhile
        pass


def main(address: Path, idle: float, request: Request) -> None:
    """Serve at `address`, unless another server does: then hand it the run."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the current folder, whose modules are no frameworks
    with open(str(address) + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks: at worst there are two servers
            pass
        if send(address, request):
            return
        server = ForkServer(address, idle)
    try:
        server.serve(request)
    finally:
        server.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), Request(Path(sys.argv[3]), int(sys.argv[4])))
