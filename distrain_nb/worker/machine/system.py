"""The few things asked of the operating system that the standard library has no call for."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, Optional

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_THIRD_OF_WEIGHT = 5  # as a nice value: 335 to 1,024
_THREE_TIMES_THE_WEIGHT = -5  # 3,121
_ENDING_S = 0.001


def die_with_parent(parent: Optional[int] = None) -> None:
    """Have the kernel kill this process when its parent ends, or end if `parent` is none more."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent has ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def name_process(name: str) -> None:
    """Set the name of this process in `top` and `ps -o comm`; 15 characters are shown."""
    _prctl(_PR_SET_NAME, ctypes.create_string_buffer(name.encode()))


@lru_cache(maxsize=None)
def weigh_session_more() -> None:
    """Have the session of this process weigh three times as much as others where CPUs are short.

    Linux lets root do that where it shares CPUs among sessions ("autogroup"). A session that is
    started later has its usual weight, which a nice value would be inherited by.
    """
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_THREE_TIMES_THE_WEIGHT))


def lower_thread() -> None:
    """Have this thread alone weigh a third of others: on Linux a nice value is a thread's."""
    if hasattr(os, "uname") and os.uname().sysname == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.nice(0) + _THIRD_OF_WEIGHT)


def join_wholly(thread: threading.Thread) -> None:
    """Wait until a thread has ended, with all that libraries do at its end.

    `Thread.join` returns before that. A process that is forked meanwhile keeps their locks for
    good: the first product of matrices waited for that of MKL in every rank.
    """
    thread.join()
    task = f"/proc/self/task/{thread.native_id}"
    while os.path.exists(task):
        time.sleep(_ENDING_S)


def flush_c_streams() -> None:
    """Write out what C code has printed: `os._exit` would lose it."""
    ctypes.CDLL(None).fflush(None)


def kill(pid: int) -> None:
    """Kill a process that may have ended by itself meanwhile."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def until_one_ends(pids: Iterable[int], seconds: float) -> None:
    """Wait until one of these processes has ended, that long at most; that long where the system
    doesn't tell."""
    poll, descriptors = select.poll(), []
    try:
        for pid in pids:
            descriptors.append(os.pidfd_open(pid))
            poll.register(descriptors[-1], select.POLLIN)
        poll.poll(1000 * seconds)
    except ProcessLookupError:  # one has ended, and nothing is left of it
        pass
    except (AttributeError, OSError):  # Python 3.8, macOS, Linux before 5.3
        time.sleep(seconds)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def wakeup() -> int:
    """Return a descriptor that can be read once a signal has come, also one of a child's end."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def _prctl(option: int, value: Any) -> None:
    if hasattr(os, "uname") and os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
