"""A fork of the kernel that tries something out, and changes nothing outside itself."""

from __future__ import annotations

import asyncio
import os
import pickle
import select
import signal
import sys
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from distrain_nb.program.proof.landlock import give_up_writing

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NOWHERE = ("/dev/null", os.devnull)
# Audit events of what reaches beyond the process. Python raises them before it acts.
_REACHES_OUT = {
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.utime", "os.kill", "os.system", "os.exec", "os.posix_spawn"),
    *("os.spawn", "os.fork", "os.forkpty", "subprocess.Popen", "shutil.rmtree", "shutil.move"),
    *("socket.connect", "socket.bind", "socket.sendto", "builtins.input", "ftplib.connect"),
    *("signal.pthread_kill", "webbrowser.open", "smtplib.connect", "tempfile.mkstemp"),
    *("tempfile.mkdtemp",),
}
# Their threads are gone in a fork, and who waits for one waits forever.
_NO_FORKS = ("tensorflow.python", "jax._src.xla_bridge")


class ReachedOut(PermissionError):
    """The code that is tried out would have changed something outside its process."""


class Untried(Exception):
    """Nothing could be learned from a fork; the text says why."""


def in_fork(work: Callable[[], Any], seconds: float) -> Any:
    """Return what a function gives in a fork of this process, which ends then.

    The function's result must be picklable. Raises Untried where there can be no fork, the function
    raises, or takes longer.
    """
    loaded = next((name for name in _NO_FORKS if name in sys.modules), "")
    if loaded or not hasattr(os, "fork"):
        raise Untried(f"{loaded.partition('.')[0] or sys.platform} allows no fork")
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Python 3.12 on: other threads don't come along
        child = os.fork()
    if not child:
        _be_child(work, theirs)
    os.close(theirs)
    try:
        answer = _read(ours, time.monotonic() + seconds)
    finally:  # also after an interrupt
        os.close(ours)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
    if answer is None:
        raise Untried(f"it takes longer than {seconds:g} s")
    if not answer:
        raise Untried("the fork ended by itself")
    is_result, result = pickle.loads(answer)
    if not is_result:
        raise Untried(result)
    return result


def _read(pipe: int, deadline: float) -> bytes | None:
    """Return all that comes through a pipe; None if it hasn't come to its end by then."""
    parts: list[bytes] = []
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _be_child(work: Callable[[], Any], pipe: int) -> None:
    """Do the work, answer, and end without a word: what the kernel has at exit is the kernel's."""
    try:
        try:
            _keep_quiet()
            if not give_up_writing():
                raise Untried("the kernel has no Landlock, which keeps a fork from writing files")
            sys.addaudithook(_refuse)
            answer = pickle.dumps((True, work()))
        except BaseException as error:
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        while answer:
            answer = answer[os.write(pipe, answer) :]
    finally:
        os._exit(0)


def _keep_quiet() -> None:
    """Send what the work prints nowhere; have it run in this one thread."""
    for stopping in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stopping, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    # ipykernel's streams would send it to the page.
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    sys.dont_write_bytecode = True
    asyncio._set_running_loop(None)  # the kernel's, which doesn't run here
    torch = sys.modules.get("torch")
    if torch is not None:
        # GNU's OpenMP waits forever for its threads, which a fork doesn't have.
        torch.set_num_threads(1)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & _WRITES and path not in _NOWHERE
        if writes and not isinstance(path, int):
            raise ReachedOut(f"it writes {path}")
    elif event in _REACHES_OUT:
        raise ReachedOut(f"it calls {event}")
