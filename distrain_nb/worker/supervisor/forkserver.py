"""A warm process that has the frameworks imported and forks each run from itself.

It never runs user code, never touches CUDA and is nobody's kernel, so that what it forks is as
clean as a new interpreter.
`python -m distrain_nb.worker.supervisor.forkserver SOCKET IDLE FOLDER ANSWER` serves the run in
FOLDER, whose client reads the pipe ANSWER, and then those that are sent to SOCKET, until it has
been idle for IDLE seconds. With `SOCKET IDLE --warm PID STARTED MODULE…` it imports the modules and
waits for a run as long as that kernel lives.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Set

from distrain_nb.worker.files import failure
from distrain_nb.worker.files.cause import SUPERVISOR, Cause
from distrain_nb.worker.files.folder import CANCEL_FILE, SUPERVISOR_LOG
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.request import TAKEN, Asked, Request, Warming, listen, receive, send
from distrain_nb.worker.files.status import Owner, State, Status
from distrain_nb.worker.machine import framework_import, process_table, system
from distrain_nb.worker.supervisor.session import SessionProcess, is_session
from distrain_nb.worker.supervisor.staying import StayingRanks
from distrain_nb.worker.supervisor.supervisor import Supervisor

TURN_S, TURN_WITH_RUNS_S = 1.0, 0.1


class ForkServer:
    """Listens at `address` and forks a supervisor for each run that it is sent."""

    def __init__(self, address: Path, idle: float) -> None:
        self._address = address
        self._idle = idle
        self._imported: Set[str] = set()
        self._warming: Optional[threading.Thread] = None
        self._kernels: List[Owner] = []
        self._has_had_a_run = False
        self._runs: Dict[int, Path] = {}
        self._has_strays = False
        self._listener = listen(address)
        self._place = os.stat(str(address)).st_ino

    def serve(self, first: Asked) -> None:
        """Serve until nothing has run and nobody has asked for a while. Adopts what is orphaned.

        Raises OSError when a run has ended and that can't be written down: readers take a run
        whose server has ended for failed.
        """
        system.adopt_orphans()
        self._answer(first)
        idle_since = time.monotonic()
        while time.monotonic() - idle_since < self._idle and self._in_place() and self._is_wanted():
            had_request = self._turn()
            if had_request or self._reap():
                idle_since = time.monotonic()

    def close(self) -> None:
        """Close the listener: whoever has asked meanwhile gets no answer, and starts another
        server."""
        if self._in_place():
            self._address.unlink()
        self._listener.close()

    def _in_place(self) -> bool:
        try:
            return os.stat(str(self._address)).st_ino == self._place
        except FileNotFoundError:
            return False

    def _is_wanted(self) -> bool:
        """Return whether a run has come, or still may from a kernel for which this was started."""
        return self._has_had_a_run or any(kernel.alive for kernel in self._kernels)

    def _turn(self) -> bool:
        self._listener.settimeout(TURN_WITH_RUNS_S if self._runs else TURN_S)
        try:
            request = receive(self._listener)
        except socket.timeout:
            return False
        if request is not None:
            self._answer(request)
        return request is not None

    def _answer(self, request: Asked) -> None:
        if isinstance(request, Warming):
            self._warm(request)
        elif isinstance(request, Request):
            self._has_had_a_run = True
            self._take(request)

    def _reap(self) -> bool:
        """Say whether a run is still alive."""
        for pid, folder in list(self._runs.items()):
            ended, wait_status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._runs[pid]
                self._has_strays = True
                _see_to_its_end(folder, wait_status)
        if self._has_strays:
            self._has_strays = self._end_strays()
        return bool(self._runs)

    def _end_strays(self) -> bool:
        """Kill what runs that have ended left behind, which this process has adopted: whether there
        may be more. It is little, unless a supervisor was killed."""
        try:
            below = process_table.descendants(os.getpid(), without=self._runs)
            strays = [pid for pid in below if _has_left(pid)]
        except OSError:
            return True
        for pid in strays:
            system.kill(pid)
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # its parent is another of them
                pass
        return bool(strays)

    def _take(self, request: Request) -> None:
        if not request.is_awaited:  # who submitted it has ended, and it has failed
            request.close()
            return
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

    def _warm(self, warming: Warming) -> None:
        """Import in a thread that gives way to others: what is forked later does not."""
        self._end_warming()
        self._kernels.append(warming.kernel)
        missing = self._missing(warming.modules)
        if missing:
            self._warming = threading.Thread(target=self._import_gently, args=(missing,))
            self._warming.start()

    def _import_gently(self, names: Iterable[str]) -> None:
        system.lower_thread()
        for name in names:
            self._import(name)
        _settle()

    def _end_warming(self) -> None:
        """Wait for the thread that imports: nothing is forked while a thread is at work."""
        if self._warming is not None:
            system.join_wholly(self._warming)
            self._warming = None

    def _preload(self, folder: Path) -> None:
        if self._warming is not None and self._warming.is_alive():
            _say_importing(folder, "frameworks")
        self._end_warming()
        missing = self._missing(Launch.read(folder).preload)
        for name in missing:
            if (folder / CANCEL_FILE).exists():
                return
            _say_importing(folder, name)
            self._import(name)
        if missing:
            _settle()

    def _missing(self, names: Iterable[str]) -> List[str]:
        return [name for name in names if name not in self._imported]

    def _import(self, name: str) -> None:
        gc.disable()  # it would go through PyTorch's 170,000 objects again and again: 0.1 s
        try:
            framework_import.import_without(name)
        except BaseException:  # the rank's own import will say what is wrong
            pass
        finally:
            gc.enable()
        self._imported.add(name)

    def _fork(self, folder: Path) -> int:
        pid = os.fork()
        if pid == 0:
            self._listener.close()
            supervise(folder)
        return pid


def _has_left(pid: int) -> bool:
    """Return whether it is in another session, as all runs are; what imports start is in this
    one."""
    stat = process_table.process_stat(pid)
    return bool(stat) and stat[3] != str(os.getsid(0))


def _say_importing(folder: Path, module: str) -> None:
    """Name the package: which of its modules is slow means nothing to the user."""
    package = module.partition(".")[0]
    Status.read(folder).enter(State.STARTING, f"importing {package}").write(folder)


def _settle() -> None:
    """Keep what was imported out of the collector's way, so that forks go on sharing it.

    To collect before takes 0.1 s after PyTorch, for 7,000 objects, and leaves holes in its pages.
    """
    gc.freeze()


def supervise(folder: Path) -> None:
    """Run as the supervisor of that run, or as that session; does not return."""
    try:
        os.setsid()
        system.name_process("distrain run")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _redirect_to(folder / SUPERVISOR_LOG)
        if is_session(folder):
            SessionProcess(folder, StayingRanks(folder, Launch.read(folder))).run()
        else:
            Supervisor(folder).run()
    except BaseException as error:
        traceback.print_exc()
        os.closerange(3, 4096)  # there may be no descriptor left to say it with
        _give_up(folder, _in_words(error))
    finally:
        os._exit(0)


def _in_words(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return f"failed:\n{traceback.format_exc()}"
    way_out = "; `ulimit -n` says how many there may be" if error.errno == errno.EMFILE else ""
    return f"failed: {error}{way_out}"


def _redirect_to(path: Path) -> None:
    log = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _see_to_its_end(folder: Path, wait_status: int) -> None:
    """Write a failed status for a supervisor that ended without writing a final one."""
    try:
        if Status.read(folder).state.final:
            return
    except Exception:  # deleted, or broken: then there is nothing to say, or more
        pass
    _give_up(folder, f"failed: {failure.describe_exit(failure.exit_status(wait_status))}")


def _give_up(folder: Path, why: str) -> None:
    try:
        status = Status.read(folder)
    except (ValueError, KeyError, TypeError):
        status = Status(State.STARTING)
    except FileNotFoundError:
        return
    try:
        error = f"the run's supervisor {why}"
        failed = status.enter(State.FAILED, "failed", error=error, cause=Cause(SUPERVISOR))
        failed.write(folder)
    except FileNotFoundError:  # the run has been deleted meanwhile
        pass


def main(address: Path, idle: float, request: Asked) -> None:
    """Serve at `address`, unless another server does: then ask that one."""
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


def _request_of(words: List[str]) -> Asked:
    if words[0] == "--warm":
        return Warming.of(words[1:])
    return Request(Path(words[0]), int(words[1]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), _request_of(sys.argv[3:]))
