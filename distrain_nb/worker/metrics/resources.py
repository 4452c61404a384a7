"""Use of the machine by each rank: CPU and memory from /proc, and its GPU's share. The network is
the host's, and stands with its first rank.

Written as event files into the run's folder, a sub-folder for each rank, so that the charts have
one source; the step is the whole seconds since the ranks were started. Where there is no /proc,
nothing is written.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.files.failure import Memory
from distrain_nb.worker.files.folder import RESOURCES_FOLDER
from distrain_nb.worker.machine import memory, process_table, sockets
from distrain_nb.worker.machine.gpus import Gpus
from distrain_nb.worker.metrics import writer

FIRST_AFTER_S = 0.5
EVERY_S = 2.0
SHARE_OF_TIME = 0.004
SPARE_DESCRIPTORS = 32


@dataclass(frozen=True)
class SampledProcess:
    """A process to measure, with all its descendants. Its `environment` names its GPU.

    Under `mpirun`, the ranks are its children. `mpi_rank` is the number of one of them.
    """

    label: str
    pid: int
    environment: Mapping[str, str]
    mpi_rank: Optional[int] = None


class Usage(NamedTuple):
    """CPU seconds so far, those of children that have ended among them, and resident bytes."""

    cpu: float
    memory: int


NOTHING = Usage(0.0, 0)


class _Processes(NamedTuple):
    """Every process of the machine: what it uses, and which it has started."""

    usage: Dict[int, Usage]
    children: Dict[int, List[int]]


class Sampler:
    """Samples from a thread of its own every two seconds, or less often where that is dear."""

    def __init__(
        self,
        folder: Path,
        sampled: Sequence[SampledProcess],
        every: float = EVERY_S,
        began: Optional[float] = None,
    ) -> None:
        self._folder = folder / RESOURCES_FOLDER
        self._processes = sampled
        self._every = every
        self._before: Dict[str, Usage] = {}
        self._traffic: Optional[Tuple[int, int]] = None
        self._available: Dict[int, Tuple[int, float]] = {}  # bytes and when, by process
        self._is_over = threading.Event()
        self._sampled = time.monotonic()
        self._began = self._sampled if began is None else began
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)

    def start(self) -> None:
        """Go on until the last process has ended.

        Each process takes a file that stays open: where they would leave too few descriptors for
        the rest of a supervisor's work, there is nothing to see of any.
        """
        if os.path.isdir("/proc/self/fd"):
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            if limit - len(os.listdir("/proc/self/fd")) > len(self._processes) + SPARE_DESCRIPTORS:
                self._thread.start()

    def end(self) -> None:
        """Sample no more: the ranks of a session outlive their run."""
        self._is_over.set()

    def memory_of(self, pid: int, peak: int) -> Memory:
        """Return the memory of a process that has died, and held `peak` bytes at most."""
        available, at = self._available.get(pid, (None, 0.0))
        return Memory(peak, available, time.monotonic() - at)

    def _run(self) -> None:
        wait, living = min(FIRST_AFTER_S, self._every), True
        gpus, is_first = None, True
        while living and not self._is_over.wait(wait):
            if is_first:  # the ranks begin before GPUs are looked for
                gpus, is_first = Gpus.open(), False
            began = time.thread_time()
            try:
                living = self._sample(gpus)
            except OSError:  # no descriptor is free, or the disk is full: perhaps the next time
                pass
            wait = max(self._every, (time.thread_time() - began) / SHARE_OF_TIME)

    def _sample(self, gpus: Optional[Gpus]) -> bool:
        """Write what is used now, and say whether a process is still there."""
        now, processes = time.monotonic(), _processes()
        passed, self._sampled = now - self._sampled, now
        for process in self._processes:
            usage = _tree(_pid(process, processes), processes)
            if process.pid in processes.usage:
                self._available[process.pid] = memory.available(process=str(process.pid)), now
            before, self._before[process.label] = self._before.get(process.label, NOTHING), usage
            if usage.memory and passed > 0:
                used = 100 * max(0.0, usage.cpu - before.cpu) / passed
                numbers = {"cpu %": used, "memory MB": usage.memory / 1e6}
                numbers.update(gpus.of(process.environment) if gpus else {})
                if process is self._processes[0]:
                    numbers.update(self._network(process, passed))
                writer.append(self._folder / process.label, int(now - self._began), numbers)
        return any(process.pid in processes.usage for process in self._processes)

    def _network(self, process: SampledProcess, seconds: float) -> Dict[str, float]:
        before = self._traffic
        try:
            now = self._traffic = sockets.traffic(str(process.pid))
        except (OSError, ValueError, IndexError):  # gone, or written otherwise, as in gVisor
            return {}
        names = ("host network in MB/s", "host network out MB/s")
        rates = ((n - b) / 1e6 / seconds for n, b in zip(now, before or now))
        return dict(zip(names, rates)) if before else {}


def _processes() -> _Processes:
    processes = _Processes({}, {})
    for pid, fields in process_table.processes():
        processes.usage[pid] = _usage(fields)
        processes.children.setdefault(int(fields[1]), []).append(pid)
    return processes


def _usage(fields: Sequence[str]) -> Usage:
    """Parse `/proc/PID/stat` behind the name: times are in clock ticks, memory in pages."""
    ticks = sum(map(int, fields[11:15]))
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


def _tree(root: int, processes: _Processes) -> Usage:
    """Return the sum over a process and all below it."""
    cpu, memory, waiting = 0.0, 0, [root]
    while waiting:
        pid = waiting.pop()
        usage = processes.usage.get(pid, NOTHING)
        cpu, memory = cpu + usage.cpu, memory + usage.memory
        waiting += processes.children.get(pid, [])
    return Usage(cpu, memory)


def _pid(sampled: SampledProcess, processes: _Processes) -> int:
    """Return the process itself, or the rank that `mpirun` has started; -1 where there is none."""
    if sampled.mpi_rank is None:
        return sampled.pid
    variable = b"OMPI_COMM_WORLD_RANK=%d" % sampled.mpi_rank
    for child in processes.children.get(sampled.pid, []):
        try:
            environment = Path(f"/proc/{child}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if variable in environment.split(b"\0"):
            return child
    return -1
