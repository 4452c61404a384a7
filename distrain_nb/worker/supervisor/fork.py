"""A fork of the process that supervises ranks, which becomes one of them."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Callable, List, Tuple

from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.machine import system, threads
from distrain_nb.worker.rank import ending, rank, renewing

PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_DESCRIPTORS = 4096


def fork_rank(
    folder: Path, launch: Launch, index: int, work: Callable[[], int], keeps: int = -1
) -> Tuple[int, List[Tuple[int, str]]]:
    """Fork a rank of a run or session that does that work, whose result is its exit status.

    It has no other descriptor of this process than `keeps`. Return its pid and the descriptors of
    its output `o` and error `e`.
    """
    pipes = [os.pipe(), os.pipe()]
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_rank(folder, launch, index, [write for _, write in pipes], supervisor, work, keeps)
    for _, write in pipes:
        os.close(write)
    return pid, [(widened(read), stream) for (read, _), stream in zip(pipes, "oe")]


def widened(pipe: int) -> int:
    """Return a pipe with room for more, which is read without waiting."""
    try:
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:  # an unprivileged user's limit: the pipe is smaller, and all still arrives
        pass
    os.set_blocking(pipe, False)
    return pipe


def _become_rank(
    folder: Path,
    launch: Launch,
    index: int,
    outputs: List[int],
    supervisor: int,
    work: Callable[[], int],
    keeps: int,
) -> None:
    """Run as a rank in the forked child; does not return."""
    status = rank.FAILED
    try:
        lead_session(supervisor, launch)
        system.name_process(launch.processes[index].label)
        for number, target in zip(outputs, (1, 2)):
            os.dup2(number, target)
        signal.set_wakeup_fd(-1)
        os.closerange(3, max(3, keeps))
        os.closerange(max(3, keeps + 1), _DESCRIPTORS)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        # Ray 2.60 has SIGINT blocked in all that it starts.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        os.environ.update(launch.processes[index].environment)
        os.chdir(launch.working_folder)
        if threads.VARIABLE in launch.processes[index].environment:
            threads.limit(int(os.environ[threads.VARIABLE]))
        renewing.renew()
        status = work()
    except BaseException as error:
        status = rank.fail(error, folder, index)
    finally:
        ending.leave(status, folder / PROGRAM_FOLDER)


def lead_session(supervisor: int, launch: Launch) -> None:
    """Make this process lead a session, and with it a process group, of its own.

    Linux shares CPUs among sessions ("autogroup", see sched(7)): in one session all ranks would
    weigh as one program.
    """
    os.setsid()
    rank.leave_notice(launch)
    system.die_with_parent(supervisor)
