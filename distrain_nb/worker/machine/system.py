"""The few things asked of the operating system that the standard library has no call for.

The memory that is left to a process.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import random
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Container, Dict, Iterable, Iterator, List, Optional, Tuple

_NO_LIMIT = 1 << 60


def available(
    proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup"), process: str = "self"
) -> int:
    """Return bytes that a process can still have: the least of what the machine and each of its
    control groups have.

    Where nothing can be read, there is no limit known. What a group holds of files that were read
    can be had again, so it doesn't count.
    """
    machine = _numbers(proc / "meminfo").get("MemAvailable:")
    free = [_NO_LIMIT if machine is None else machine << 10]
    free += [limit - used for limit, used in _groups(proc / process / "cgroup", cgroups)]
    return max(0, min(free))


def _groups(membership: Path, cgroups: Path) -> Iterator[Tuple[int, int]]:
    """Yield (limit, used) in bytes of each control group of a process that has a limit."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = cgroups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = cgroups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        below = root / path.lstrip("/")
        for group in (below, *below.parents):
            limit, used = (_text(group / name).strip() for name in names[:2])
            if limit.isdigit() and used.isdigit():
                files = _numbers(group / "memory.stat").get(names[2], 0)
                yield int(limit), int(used) - files
            if group == root:
                break


def _numbers(path: Path) -> Dict[str, int]:
    """Return the lines `name number` of a file."""
    words = [line.split() for line in _text(path).splitlines()]
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_WHILE_IMPORTING = {
    # pandas imports pyarrow where it is there, whose jemalloc starts a thread that only tidies up.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    # What asks PyTorch for a GPU would initialize CUDA, and no fork could use it then.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


def import_without(name: str) -> None:
    """Import a framework without a thread that a fork would leave behind, and without CUDA. Raises
    what it raises."""
    unset = {key: text for key, text in _WHILE_IMPORTING.items() if key not in os.environ}
    os.environ.update(unset)
    try:
        importlib.import_module(name)
    finally:
        for key in unset:
            os.environ.pop(key, None)


_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_THIRD_OF_WEIGHT = 5  # as a nice value: 335 to 1,024
_THREE_TIMES_THE_WEIGHT = -5  # 3,121
_ENDING_S = 0.001
_PORTS = 1 << 16
_PORTS_TRIED = 100
_CHOSEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")  # ip(7): the first and the last


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


class Deadline:
    """A time at which this process exits with a status, even if a thread holds the interpreter's
    lock for ever.

    Does nothing where the system has no such timers.
    """

    def __init__(self, status: int) -> None:
        # `_exit` gets the status in a thread that the C library starts.
        self._timer = ctypes.c_void_p()
        try:
            libc = ctypes.CDLL(None)
            self._rt = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1")
            act = ctypes.cast(libc._exit, ctypes.c_void_p)
            event = _SigEvent(status, 0, _SIGEV_THREAD, act)
            clock, timer = time.CLOCK_MONOTONIC, ctypes.byref(self._timer)
            self._exists = self._rt.timer_create(clock, ctypes.byref(event), timer) == 0
        except (AttributeError, OSError):
            self._exists = False

    def set(self, seconds: float) -> None:
        """Let it be so many seconds from now."""
        if self._exists:
            whole_seconds = int(seconds)
            times = (ctypes.c_long * 4)(0, 0, whole_seconds, int((seconds - whole_seconds) * 1e9))
            self._rt.timer_settime(self._timer, 0, times, None)


_SIGEV_THREAD = 2


class _SigEvent(ctypes.Structure):
    """`struct sigevent` of Linux, for a function that a thread calls with the value."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_char * 40),
    )


def descendants(pid: int, without: Container[int] = ()) -> List[int]:
    """Return every living process below `pid`, except children `without` and what is below
    those."""
    if pid == os.getpid() and not _has_children(without):
        return []
    children: Dict[int, List[int]] = {}
    for child, fields in processes():
        children.setdefault(int(fields[1]), []).append(child)
    pids: List[int] = []
    below = [child for child in children.get(pid, []) if child not in without]
    while below:
        pids += below
        below = [grandchild for child in below for grandchild in children.get(child, [])]
    return pids


def _has_children(without: Container[int]) -> bool:
    """Return whether this process has others than those. That is known sooner than what all
    processes descend from; where the system doesn't tell, it may have some."""
    try:
        for thread in os.listdir("/proc/self/task"):
            # It is whole, as nobody but this process takes a child off: those that have ended stay.
            with open(f"/proc/self/task/{thread}/children") as children:
                if any(int(child) not in without for child in children.read().split()):
                    return True
    except OSError:
        return True
    return False


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


def processes() -> Iterator[Tuple[int, List[str]]]:
    """Yield every process, with what /proc/PID/stat has behind its name; none where there is no
    /proc.

    Raises OSError when that can't be read, for want of a free descriptor for example.
    """
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            stat = process_stat(int(entry))
            if stat:
                yield int(entry), stat


def process_stat(pid: int) -> List[str]:
    """Return the fields of /proc/PID/stat behind the process's name; empty if there is no such
    process.

    Raises OSError when it can't be read: the process may be there.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()


def resident_bytes(pid: int) -> int:
    """Return the memory that a process has to itself and shares, as `top` shows it; 0 where there
    is no such process, or no /proc."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def out_of_memory_kills() -> int:
    """Return how many processes the machine has killed for want of memory since it started."""
    try:
        counters = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in counters if line.startswith("oom_kill "))


class HeldPort:
    """A free port of a host's address, of loopback unless it is said, bound but not listened on, so
    that no one else is given it.

    A server that sets SO_REUSEADDR, as those of PyTorch and gRPC do, can listen on it meanwhile. So
    could one that was given this number before, let go of it and comes back: where there are
    numbers that the system gives to nobody, it is one of those.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._socket = socket.socket()
        self._bind(host)
        # Not before: two that share their numbers could then hold the same one.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.number: int = self._socket.getsockname()[1]

    def _bind(self, host: str) -> None:
        for number in (*_given_to_nobody(_PORTS_TRIED), 0):
            try:
                self._socket.bind((host, number))
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not number:
                    raise


def _given_to_nobody(amount: int) -> List[int]:
    """Return free ports, all above those that the system chooses from by itself."""
    try:
        highest = int(_CHOSEN_PORTS.read_text().split()[1])
    except (OSError, ValueError, IndexError):  # not on Linux
        return []
    above = range(highest + 1, _PORTS)
    return random.SystemRandom().sample(above, min(amount, len(above)))


def listen(address: str) -> socket.socket:
    """Return a listener at `host:port`, on that address alone: hosts of a rehearsal may share a
    machine.

    Who connects need not be accepted to see that the listener is still there.

    Raises:
        OSError: it can't be had, with the address in place of a file's name.
    """
    host, _, port = address.rpartition(":")
    family, _, _, _, where = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen(socket.SOMAXCONN)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, error.strerror, address) from None
    return listener


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
