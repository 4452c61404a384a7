"""A carrier that several runs of one process share. Each run has a thread there.

To start a carrier takes more processor time than to carry a short run. A process that starts
several runs sends them all to one carrier, through a socket. A carrier that takes no more runs
closes its end. It still reads what had arrived before. So each run is taken once, by this carrier
or by the next.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from distrain_nb.backends.remote import carrier_log
from distrain_nb.backends.remote.processes import start_detached
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import CARRIER_LOG, LOCK_FILE
from distrain_nb.worker.files.status import Owner, Status
from distrain_nb.worker.machine.environment import variables

CARRIER = "distrain_nb.backends.remote"
SHARED = "--shared"
MOST_RUNS = 32  # of a carrier: its threads take turns
IDLE_S, TURN_S = 5.0, 0.5
_END = b"\0"  # the end of a path, which contains no NUL

_newest: tuple[_Starter, socket.socket] | None = None
_handing_over = threading.Lock()


@dataclass(frozen=True)
class _Starter:
    """The process that starts a carrier, as far as the carrier passes it on to the jobs of its
    runs."""

    pid: int
    folder: str
    environ: dict[str, str]

    @classmethod
    def now(cls) -> _Starter:
        try:
            folder = str(Path.cwd())
        except FileNotFoundError:  # it has been deleted
            folder = ""
        return cls(os.getpid(), folder, variables())


def hand_over(folder: Path) -> None:
    """Give the run of a folder to the carrier that this process started last.

    A new carrier is started if that one takes no more runs, or if anything has changed that its
    runs' jobs would inherit.
    """
    global _newest
    starter = _Starter.now()
    (folder / LOCK_FILE).touch(0o600)
    with _handing_over:
        if _newest and _newest[0] == starter and _is_sent(_newest[1], folder):
            return
        if _newest and _newest[0].pid == starter.pid:
            _newest[1].close()
        _newest = starter, _start_carrier(folder)
        _is_sent(_newest[1], folder)


def _start_carrier(folder: Path) -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        start_detached(["-m", CARRIER, SHARED, str(number)], folder / CARRIER_LOG, passed=[number])
    return ours


def _is_sent(connection: socket.socket, folder: Path) -> bool:
    try:
        connection.sendall(os.fsencode(folder.absolute()) + _END)
    except OSError:  # its end is closed
        return False
    return True


class SharedCarrier:
    """Carries runs to their ends, each in a thread. Their folders arrive through a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        """Carry runs until the other end is closed, nothing has arrived for a while, or they are
        many."""
        self._connection.settimeout(TURN_S)
        idle_since = time.monotonic()
        while self._take():
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if self._threads:
                idle_since = time.monotonic()
            if len(self._threads) >= MOST_RUNS or time.monotonic() > idle_since + IDLE_S:
                # What was sent before is read all the same, and then comes the end.
                self._connection.shutdown(socket.SHUT_RD)
        for thread in self._threads:
            thread.join()

    def _take(self) -> bool:
        """Wait for folders for a while. Return whether more can come."""
        try:
            data = self._connection.recv(1 << 16)
        except TimeoutError:
            return True
        *paths, self._buffer = (self._buffer + data).split(_END)
        for path in paths:
            thread = threading.Thread(target=_carry, args=(Path(os.fsdecode(path)),))
            self._threads.append(thread)
            thread.start()
        return bool(data)


def _carry(folder: Path) -> None:
    from distrain_nb.backends.remote.carrier import carry

    with carrier_log.in_thread(folder):
        try:
            carry(folder)
        finally:
            _let_go(folder)


def _let_go(folder: Path) -> None:
    """Remove this process as the owner of a run that it can't carry any further.

    Then another carrier is started for the run.
    """
    with suppress(OSError, Damaged):
        status = Status.read(folder)
        if not status.state.final and status.supervisor == Owner.of(os.getpid()):
            replace(status, supervisor=None).write(folder)
