"""The processes that a supervisor has started: ranks, or what starts the ranks of a host."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Dict

from distrain_nb.worker.files import failure, marks
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.files.launch import ProcessSpec
from distrain_nb.worker.machine import process_table

# What `mpirun` has started ends a moment after it.
WORD_WITHIN_S = 2.0


class Child:
    """A process that was started here."""

    def __init__(self, pid: int, specs: Dict[int, ProcessSpec]) -> None:
        self.pid = pid
        self.specs = specs
        self.alive = True
        self.signalled = False

    @property
    def roles(self) -> set[str]:
        return {spec.role for spec in self.specs.values()}

    def terminate(self) -> None:
        """Have the process and its group end, by SIGTERM."""
        self.signalled = True
        _signal_group(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the process and its group, by SIGKILL."""
        self.signalled = True
        _signal_group(self.pid, signal.SIGKILL)


class Launcher(Child):
    """`mpirun`, or what waits for that of another host: it stands for all ranks of this host."""

    def __init__(self, pid: int, specs: Dict[int, ProcessSpec], folder: Path) -> None:
        super().__init__(pid, specs)
        self._folder = folder

    def terminate(self) -> None:
        """Send SIGTERM to the ranks, as Open MPI would give them a second to end."""
        ranks = list(marks.living(self._folder))
        if not ranks:
            super().terminate()
        self.signalled = True
        for pid in ranks:
            _signal_group(pid, signal.SIGTERM)

    def failed(self, status: int) -> Failure:
        """Return the failure of an ended process: that of another host, if one reports in time."""
        end = time.monotonic() + WORD_WITHIN_S
        while time.monotonic() < end:
            word = failure.read(self._folder, failure.LAUNCHER)
            if word is not None:
                return word
            if not process_table.descendants(os.getpid()):
                break
            time.sleep(0.05)
        return failure.of_launcher(status)


def _signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass
