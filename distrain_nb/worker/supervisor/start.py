"""Starting the processes of a run: forked from here, or by `mpirun`, here or on another host.

Brings what all processes of a run print into its log.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set

from distrain_nb.worker.files import failure
from distrain_nb.worker.files import launch as marks
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.files.folder import PIPE, REPORTED_FILE
from distrain_nb.worker.files.launch import Launch, ProcessSpec, fill
from distrain_nb.worker.files.log import LineSplitter, LogWriter
from distrain_nb.worker.machine import system
from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.resources import SampledProcess
from distrain_nb.worker.rank import ending, rank
from distrain_nb.worker.reduction import reducer
from distrain_nb.worker.supervisor import parameter_server
from distrain_nb.worker.supervisor.fork import fork_rank, lead_session, widened
from distrain_nb.worker.supervisor.receiver import Receiver

# The line of a kernel on a GPU whose assertion has failed; the exception to come doesn't name it.
_ASSERTED = b"] Assertion `"
_ASSERTION = re.compile(
    rb"\t(\d+)\t\w\t.*?([^\s:]+): block: \[[\d,]+\], thread: \[[\d,]+\] (Assertion `.*?` failed)"
)

READ_AT_MOST = 1 << 18
HELD_RETRIES_S = 5.0


class Output:
    """The open streams of the processes, and the log that they end in.

    `echo` is given the same records as the log.
    """

    def __init__(self, folder: Path, echo: Optional[Callable[[bytes], None]] = None) -> None:
        self._log = LogWriter(folder)
        self._echo = echo
        self._selector = selectors.DefaultSelector()
        self._splitters: Dict[int, LineSplitter] = {}
        self._staying: Set[int] = set()  # streams of ranks that outlive this log
        self._signs: Set[int] = set()  # that somebody else reads
        self.heard_at = time.monotonic()  # when a process last printed
        self.progress: Optional[progress.ProgressTracker] = None
        self.tell: Optional[Callable[[str], None]] = None  # has a line of the service in the log
        self.receiver: Optional[Receiver] = None
        self.assertions: Dict[int, str] = {}  # by process, the first that has failed on its GPU

    @property
    def trouble(self) -> str:
        """Why the log can't be written just now; empty when it can."""
        return self._log.trouble

    def add(self, descriptor: int, process: int, stream: str, *, stays: bool = False) -> None:
        """Log a stream of a process; one that `stays` is left open at the end."""
        self._splitters[descriptor] = LineSplitter(process, stream)
        self._selector.register(descriptor, selectors.EVENT_READ)
        if stays:
            self._staying.add(descriptor)

    def watch(self, descriptor: int) -> None:
        """End the wait of `turn` when there is something here, and leave it to be read."""
        self._signs.add(descriptor)
        self._selector.register(descriptor, selectors.EVENT_READ)

    def unwatch(self, descriptor: int) -> None:
        if descriptor in self._signs:
            self._signs.remove(descriptor)
            self._selector.unregister(descriptor)

    def serve(self) -> None:
        """Take what libraries send of their progress, once the processes have been started."""
        if self.receiver is not None and self.progress is not None:
            self.receiver.serve(self.progress.take_sent)

    def wake_by(self, descriptor: int) -> None:
        """End the wait of `turn` also when something can be read here."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def turn(self, wait: float) -> None:
        """Log what comes within `wait` seconds. Raises LogLost when the log can't hold it."""
        for key, _ in self._selector.select(wait):
            if key.fd not in self._signs:
                self._read(key.fd)
        moving = [splitter.moving() for splitter in self._splitters.values()]
        self._write(b"".join(moving))
        if self.progress is not None:
            self.progress.look()

    def say(self, process: int, text: str) -> None:
        """Write a line of our own into the log of a process, on its standard error."""
        self._write(LineSplitter(process, "e").feed(text.encode("utf-8", "replace") + b"\n"))

    def drain(self, wait: float) -> None:
        """Log what is left in the streams, for `wait` seconds at most."""
        end = time.monotonic() + wait
        while self._staying and self._selector.select(0) and time.monotonic() < end:
            self.turn(0)
        while self._splitters.keys() - self._staying and time.monotonic() < end:
            self.turn(0.05)

    def end_streams(self) -> None:
        """End the lines of processes that are gone; others may be added."""
        for descriptor, splitter in self._splitters.items():
            self._write(splitter.finish())
            self._selector.unregister(descriptor)
            if descriptor not in self._staying:
                os.close(descriptor)
        self._splitters.clear()
        self._staying.clear()
        if self.progress is not None:
            self.progress.look(at_once=True)

    def close(self) -> int:
        """End the log; the bytes of it that could not be written."""
        end = time.monotonic() + HELD_RETRIES_S
        self.end_streams()
        while not self._log.flush() and time.monotonic() < end:
            time.sleep(0.25)
        self._selector.close()
        if self.receiver is not None:
            self.receiver.close()
        return self._log.close()

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, READ_AT_MOST)
        except BlockingIOError:
            return
        splitter = self._splitters.get(descriptor)
        if splitter is None:
            return
        self.heard_at = time.monotonic()
        self._write(splitter.feed(data) if data else splitter.finish())
        if not data:
            self._selector.unregister(descriptor)
            del self._splitters[descriptor]
            if descriptor not in self._staying:  # a rank that has died has its session close it
                os.close(descriptor)
            self._staying.discard(descriptor)

    def _write(self, records: bytes) -> None:
        if self._echo is not None and records:
            self._echo(records)
        if self.progress is not None and records:
            self.progress.hear(records)
        if _ASSERTED in records:
            for process, kernel, text in _ASSERTION.findall(records):
                words = f"{text.decode('utf-8', 'replace')} in {kernel.decode('utf-8', 'replace')}"
                self.assertions.setdefault(int(process), words)
        self._log.write(records)


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

    def signal(self, number: signal.Signals) -> None:
        """Signal the process and its group."""
        self.signalled = True
        _signal_group(self.pid, number)


# What `mpirun` has started ends a moment after it.
WORD_WITHIN_S = 2.0


class Launcher(Child):
    """`mpirun`, or what waits for that of another host: it stands for all ranks of this host."""

    def __init__(self, pid: int, specs: Dict[int, ProcessSpec], folder: Path) -> None:
        super().__init__(pid, specs)
        self._folder = folder

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; SIGTERM goes to the ranks, as Open MPI would give them a second to end."""
        ranks = list(marks.living(self._folder)) if number == signal.SIGTERM else []
        if not ranks:
            super().signal(number)
        self.signalled = True
        for pid in ranks:
            _signal_group(pid, number)

    def failed(self, status: int) -> Failure:
        """Return the failure of an ended process: that of another host, if one reports in time."""
        end = time.monotonic() + WORD_WITHIN_S
        while time.monotonic() < end:
            word = failure.read(self._folder, failure.LAUNCHER)
            if word is not None:
                return word
            if not system.descendants(os.getpid()):
                break
            time.sleep(0.05)
        return failure.of_launcher(status)


def _signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass


def filled(folder: Path, launch: Launch, ports: Sequence[int], output: Output) -> Launch:
    """Return a run's launch with all variables of its processes; `output` follows how far they
    are."""
    launch = replace(launch, processes=tuple(_filled(folder, launch, ports)))
    return _followed(folder, launch, output)


def start(folder: Path, launch: Launch, ports: Sequence[int], output: Output) -> List[Child]:
    """Start everything; what it prints goes to `output`."""
    launch = filled(folder, launch, ports, output)
    if launch.mpirun:
        allowed = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        ranks = [sys.executable, "-m", "distrain_nb.worker.rank.rank"]
        return [_start_launcher([*launch.mpirun, *allowed, *ranks], folder, launch, output)]
    if launch.awaits:
        waiting = [
            sys.executable,
            "-m",
            "distrain_nb.worker.replica.remote_start",
            "--wait",
            str(folder),
        ]
        return [_start_launcher(waiting, folder, launch, output)]
    children = []
    for index, spec in enumerate(launch.processes):
        pid, outputs = fork_rank(folder, launch, index, partial(_work, folder, launch, index))
        for descriptor, stream in outputs:
            output.add(descriptor, index, stream)
        children.append(Child(pid, {index: spec}))
    return children


def processes_of(child: Child) -> Iterator[SampledProcess]:
    """Yield the processes of a child whose use of the machine is sampled."""
    for spec in child.specs.values():
        environment = {**os.environ, **spec.environment}
        mpi_rank = spec.rank if isinstance(child, Launcher) else None
        yield SampledProcess(spec.label, child.pid, environment, mpi_rank)


def _filled(folder: Path, launch: Launch, ports: Sequence[int]) -> Iterator[ProcessSpec]:
    """Yield the processes with all variables that they are started with."""
    names = rank.names_of_run(folder)
    for index, process in enumerate(launch.processes):
        environment = fill(process.environment, folder, ports)
        of_rank = {**os.environ, **environment}
        of_trackers = rank.variables(folder, index, process.rank, of_rank, names)
        yield replace(process, environment={**environment, **of_trackers})


def _followed(folder: Path, launch: Launch, output: Output) -> Launch:
    """Follow how far the ranks are; return them with the variables by which they say it."""
    progress.forget(folder)
    leads = any(process.rank == 0 for process in launch.processes)
    output.progress = progress.ProgressTracker(folder, output.tell if leads else None)
    leading = launch.processes[0].environment if launch.processes else {}
    output.receiver = receiver = Receiver(folder, {**os.environ, **leading})
    variables = receiver.open()
    for process in launch.processes:
        process.environment.update(variables)
        if process.rank == 0:
            process.environment[progress.VARIABLE] = str(folder / REPORTED_FILE)
    return launch


def _work(folder: Path, launch: Launch, index: int) -> int:
    """Do in its process what that rank of a run is for."""
    spec = launch.processes[index]
    if spec.serves:
        parameter_server.serve()
    if spec.role == "reducers":
        reducer.serve(reducer.address(os.environ), spec.label)
        ending.leave(0)
    return rank.run(folder, index, launch.results if index == 0 else ())


def _start_launcher(command: Sequence[str], folder: Path, launch: Launch, output: Output) -> Child:
    """Start what starts the ranks, each of which reaches the log by named pipes."""
    launch.write(folder)
    specs = dict(enumerate(launch.processes))
    for index in specs:
        for stream in "oe":
            name = folder / PIPE.format(index, stream)
            os.mkfifo(str(name))
            _listen(os.open(str(name), os.O_RDONLY | os.O_NONBLOCK), index, stream, output)
    pipes = [os.pipe(), os.pipe()]
    process = subprocess.Popen(
        command,
        cwd=launch.working_folder,
        env={**os.environ, rank.RUN_FOLDER_VARIABLE: str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=pipes[0][1],
        stderr=pipes[1][1],
        preexec_fn=partial(lead_session, os.getpid(), launch),
    )
    for (read, write), stream in zip(pipes, "oe"):
        os.close(write)
        _listen(read, 0, stream, output)
    return Launcher(process.pid, specs, folder)


def _listen(descriptor: int, index: int, stream: str, output: Output) -> None:
    output.add(widened(descriptor), index, stream)
