"""Starting the processes of a run: forked from here, or by `mpirun`, here or on another host."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Iterator, List, Sequence

from distrain_nb.worker.files.folder import PIPE, REPORTED_FILE
from distrain_nb.worker.files.launch import Launch, ProcessSpec, fill
from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.resources import SampledProcess
from distrain_nb.worker.rank import ending, rank, tracker_variables
from distrain_nb.worker.reduction import reducer
from distrain_nb.worker.supervisor import parameter_server
from distrain_nb.worker.supervisor.child import Child, Launcher
from distrain_nb.worker.supervisor.fork import fork_rank, lead_session, widened
from distrain_nb.worker.supervisor.output import Output
from distrain_nb.worker.supervisor.receiver import Receiver


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
    names = tracker_variables.names_of_run(folder)
    for index, process in enumerate(launch.processes):
        environment = fill(process.environment, folder, ports)
        of_rank = {**os.environ, **environment}
        of_trackers = tracker_variables.variables(folder, index, process.rank, of_rank, names)
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
