"""One rank: from a bare process to the user's program and its last word."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Optional, Sequence

from distrain_nb.worker.files import marks
from distrain_nb.worker.files.failure import Failure
from distrain_nb.worker.files.folder import (
    PIPE,
    PROGRAM_FOLDER,
    RESULTS_FOLDER,
)
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine import system
from distrain_nb.worker.machine.sockets import container_bridges
from distrain_nb.worker.metrics import step_times
from distrain_nb.worker.metrics.step_times import CLOCK
from distrain_nb.worker.rank import (
    debugger,
    dry_rank,
    ending,
    program,
    progress_hooks,
    prompt,
    proving,
    recording,
    stacks,
    step_hooks,
    stopping,
    timeouts,
    tracebacks,
    values,
    world,
)
from distrain_nb.worker.rank.wrapped import ResultWriter

FAILED = 1
RUN_FOLDER_VARIABLE = "DISTRAIN_RUN_FOLDER"  # each host's own, whose daemon passes it on


def run(folder: Path, process: int, results: Sequence[str]) -> int:
    """Run the program as that process and give its exit status; a failure is written down."""
    dry_rank.wait_for_turn(folder, process)
    prepare(folder)
    stopping.begin(folder, process)
    proving.begin(folder)
    dry_rank.begin(folder, process)
    return run_cell(folder, process, results)


def prepare(folder: Path) -> None:
    """Change this process, once, for the programs that it runs; the folder is that of its run, or
    of its session."""
    _line_buffered_output()
    ending.begin()
    debugger.begin()
    timeouts.change()
    world.watch(folder / PROGRAM_FOLDER)
    step_hooks.install()
    progress_hooks.install()
    program.prepare()


def run_cell(
    folder: Path,
    process: int,
    results: Sequence[str],
    main: Optional[ModuleType] = None,
    before_cell: Callable[[], None] = lambda: None,
    was_stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Run one program as that process of a run. A rank that stays runs it in `main`; what ends it
    once it `was_stopped` is no failure."""
    prompt.begin(folder, process)
    stacks.begin(folder, process, folder / PROGRAM_FOLDER)
    step_times.begin()
    recording.begin()
    status = FAILED
    try:
        main = main or ModuleType("__main__")
        namespace = program.run_in(main, folder / PROGRAM_FOLDER, before_cell)
        if results:
            _save(namespace, results, folder / RESULTS_FOLDER)
        world.check(folder, process)
        status = 0
    except SystemExit as exit_request:
        stacks.leave_word(exit_request.__traceback__)
        status = _requested_exit(exit_request, folder, process)
        if not status:
            world.check(folder, process)
        return status
    except BaseException as error:
        if was_stopped():
            return stopping.STOPPED
        began = time.time()
        debugger.post_mortem(error, tracebacks.format_exception(error))
        return fail(error, folder, process, began)
    finally:
        CLOCK.end()
        proving.end(failed=bool(status))
        dry_rank.end(failed=bool(status))
        recording.end(failed=bool(status))
    return status


def _save(namespace: Dict[str, Any], names: Sequence[str], folder: Path) -> None:
    missing = [name for name in names if name not in namespace]
    if missing:
        raise NameError(f"--result asks for {', '.join(missing)}, which was never set")
    unsaved = values.dump({name: namespace[name] for name in names}, folder, ResultWriter)
    for name, reason in unsaved.items():
        print(f"--result {name} could not be saved: {reason}", file=sys.stderr)


def _requested_exit(request: SystemExit, folder: Path, process: int) -> int:
    if request.code is None or request.code == 0:
        return 0
    if isinstance(request.code, int):
        status, reason = request.code, ""
    else:
        first = str(request.code).splitlines()[:1]
        status, reason = FAILED, "".join(": " + line for line in first)
        print(request.code, file=sys.stderr)
    summary = f"exited with status {status}{reason}"
    text = tracebacks.format_exception(request)
    Failure(process, time.time(), summary, text, status=status).write(folder)
    return status


def fail(error: BaseException, folder: Path, process: int, began: Optional[float] = None) -> int:
    """Write down why that process fails, since `began`, print it, and give its exit status."""
    began = began or time.time()
    text = tracebacks.format_exception(error)
    shown = tracebacks.without_native_frames(text)
    summary = tracebacks.headline(error)
    if timeouts.reason():
        summary += f" ({timeouts.reason()})"
    Failure(process, began, summary, shown).write(folder)
    print(text.rstrip(), file=sys.stderr, flush=True)
    return FAILED


def _line_buffered_output() -> None:
    sys.stdout = _line_buffered(1)
    sys.stderr = _line_buffered(2)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]


def _line_buffered(descriptor: int) -> io.TextIOWrapper:
    raw = open(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def main(folder: Path) -> None:
    """Run as a rank that `mpirun` started, whose variables are in this host's run folder."""
    system.die_with_parent()
    program.add_packages()
    process = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
    marks.begin(folder, process)
    for number, stream in ((1, "o"), (2, "e")):
        os.dup2(os.open(str(folder / PIPE.format(process, stream)), os.O_WRONLY), number)
    launch = Launch.read(folder)
    leave_notice(launch)
    spec = launch.processes[process]
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    if rank != str(spec.rank):
        sys.exit(
            f"mpirun placed rank {rank} where rank {spec.rank} belongs: "
            "leave --map-by and --rank-by out of the MPI options"
        )
    os.environ.update(spec.environment)
    leave_out_bridges()
    os.chdir(launch.working_folder)
    status = run(folder, process, launch.results if process == 0 else ())
    if status:
        # Finalizing MPI would wait for the ranks that are still at work.
        ending.leave(status, folder / PROGRAM_FOLDER)
    marks.succeed(folder, process)
    ending.leave_out_compiling()


def leave_out_bridges() -> None:
    """Keep Open MPI off the bridges of containers, unless interfaces are named.

    It uses every interface, and takes addresses of the same network for connected: between hosts
    that have a bridge of Docker each it hangs, as where one ends (seen with 4.1.4).
    """
    names = [f"OMPI_MCA_btl_tcp_if_{name}" for name in ("include", "exclude")]
    bridges = container_bridges()
    if bridges and not any(name in os.environ for name in names):
        os.environ[names[1]] = ",".join(["127.0.0.0/8", "sppp", *bridges])  # the first two: default


def leave_notice(launch: Launch) -> None:
    """Leave the notice of a time limit, which Slurm sends to all processes, to the supervisor."""
    ignores = launch.signal_before is not None
    signal.signal(signal.SIGUSR1, signal.SIG_IGN if ignores else signal.SIG_DFL)


if __name__ == "__main__":
    main(Path(os.environ[RUN_FOLDER_VARIABLE]))
