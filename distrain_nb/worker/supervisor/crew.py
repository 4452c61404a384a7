"""The ranks of a run, as its supervisor starts, observes and ends them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from distrain_nb.worker.files import failure, reserve
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine import process_table, system
from distrain_nb.worker.supervisor.child import Child
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.start import start

Handler = Callable[..., None]


class End(NamedTuple):
    """The end of a process, or of a cell in a rank that stays.

    `status` is its exit status as subprocess has it. `peak` are the most bytes that it took.
    """

    child: Child
    status: int
    peak: int


class Crew:
    """Ranks that are forked for one run."""

    def __init__(self) -> None:
        self._children: List[Child] = []

    def start(
        self, folder: Path, launch: Launch, ports: Sequence[int], output: Output
    ) -> List[Child]:
        """Start all processes of a run.

        Raises OSError if the disk has no room for its last words.
        """
        if not self._children:  # a further attempt has the reserve already
            reserve.reserve(folder, reserve.OF_RUN)
        self._children = start(folder, launch, ports, output)
        return self._children

    def note_begin(self) -> None:
        """Note that the run's status now lists its processes."""

    def ends(self) -> Iterator[End]:
        """Yield the processes that have ended since the last call."""
        for pid, status, peak in reaped():
            for child in self._children:
                if child.pid == pid:
                    child.alive = False
                    yield End(child, status, peak)

    def kill_rest(self) -> None:
        """Kill processes that the run's processes have left behind."""
        for pid in process_table.descendants(os.getpid()):
            system.kill(pid)

    def finish(self, output: Output) -> None:
        """Release the log of a run that has ended."""

    def wakeup(self) -> int:
        """Return a descriptor that can be read once a process has ended."""
        return system.wakeup()

    def remarks(self) -> Iterator[str]:
        """Yield lines about the ranks for the end of the run's log."""
        return iter(())

    @property
    def is_ending(self) -> bool:
        """Whether more than this run is ending."""
        return False

    def take_signals(self, on_terminate: Handler, on_notice: Handler) -> None:
        """Handle the signals of a stop and a time limit, and adopt orphaned processes."""
        system.adopt_orphans()
        signal.signal(signal.SIGTERM, on_terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, on_notice)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])  # see replica/start.py


def reaped() -> Iterator[Tuple[int, int, int]]:
    while True:
        try:
            pid, wait_status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, failure.exit_status(wait_status), used.ru_maxrss << 10  # in KiB, on Linux
