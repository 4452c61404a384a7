"""What a process waits for, and whether it gets anywhere: read from Linux's /proc, from outside."""

from __future__ import annotations

import os
import platform
import signal
import struct
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.machine import process_table
from distrain_nb.worker.machine.connections import OUTSIDE, Connections, holders

# System calls by their numbers, of those in which a program can wait (asm/unistd.h).
_CALLS = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "read", 19: "read", 20: "write",
        23: "select", 35: "sleep", 42: "connect", 43: "accept", 44: "send", 45: "recv",
        46: "send", 47: "recv", 61: "wait", 74: "fsync", 75: "fsync", 202: "futex",
        230: "sleep", 232: "epoll", 247: "wait", 257: "open", 270: "select", 271: "poll",
        281: "epoll", 288: "accept", 72: "flock", 73: "flock", 18: "write",
    },
    "aarch64": {
        22: "epoll", 25: "flock", 32: "flock", 56: "open", 63: "read", 64: "write", 65: "read",
        66: "write", 67: "read", 68: "write", 72: "select", 73: "poll", 82: "fsync",
        83: "fsync", 95: "wait", 98: "futex", 101: "sleep", 115: "sleep", 202: "accept",
        203: "connect", 206: "send", 207: "recv", 211: "send", 212: "recv", 242: "accept",
        260: "wait",
    },
}.get(platform.machine(), {})  # fmt: skip
# Linux goes on with no such call after a signal's handler, whatever the handler asks for.
_CUT_SHORT = ("sleep", "poll", "epoll", "select")
# Has the main thread of a rank write its stack; 0 where there is no such signal.
STACK_SIGNAL: int = signal.SIGRTMIN + 9 if hasattr(signal, "SIGRTMIN") else 0
_OF_A_FILE = ("read", "write", "recv", "send", "connect", "accept", "fsync", "flock")
# Which argument of a call says until when it waits at most, and its value for ever.
_FOR_EVER = {"poll": (2, 0xFFFFFFFF), "epoll": (3, 0xFFFFFFFF), "select": (4, 0), "futex": (3, 0)}
_PPOLL = {"x86_64": 271, "aarch64": 73}.get(platform.machine(), -1)  # has a pointer, not a number


class ChildLook(NamedTuple):
    """A process below another; `state` is the letter of proc(5): T is stopped, Z has ended.

    `is_outside`: it waits for who is outside of the run; `switches` are those of its main thread.
    """

    pid: int
    name: str
    state: str
    call: str = ""
    is_outside: bool = False
    switches: int = 0


class _Wait(NamedTuple):
    """The system call that a thread waits in, the files that it waits for, and whether the call
    ends by itself some time."""

    call: str = ""
    targets: Sequence[str] = ()
    is_limited: bool = False


class Look(NamedTuple):
    """A process at one moment. Counters only grow; `call` is empty where its main thread runs.

    `cpu`, in ticks, is that of all its threads, `main_cpu` of the main one; `below` is the CPU of
    its children; `io` are the bytes that all of them have read and written; `switches` counts how
    often the main thread has given its CPU up. `answering` is the state of the thread that answers.

    `answerer` is who can answer on the TCP connection that the main thread waits for, if it does,
    and `is_limited` says that its call ends by itself. `threads_run` and `threads_outside` say that
    another thread computes, or waits for who is outside of the run.
    """

    state: str
    call: str
    target: str
    cpu: int
    main_cpu: int
    below: int
    io: int
    switches: int
    children: Tuple[ChildLook, ...] = ()
    answering: str = ""
    answerer: str = ""
    is_limited: bool = False
    threads_run: bool = False
    threads_outside: bool = False


def is_locked_out(looks: Sequence[Look]) -> bool:
    """Return whether the thread of a process that answers has waited, as for the interpreter's
    lock, for which it wakes up every 5 ms. One that is stopped or lacks CPU time does not."""
    return 2 * sum(look.answering == "S" for look in looks) > len(looks)


def look(pids: List[int], without: Dict[int, int]) -> Dict[int, Look]:
    """Return what can be seen of these processes, by their number; `without` names a thread of each
    that doesn't count. Raises OSError where there is no /proc."""
    processes = dict(process_table.processes())
    if not processes:
        raise OSError("there is no /proc")
    children: Dict[int, List[int]] = {}
    for pid, fields in processes.items():
        children.setdefault(int(fields[1]), []).append(pid)
    answerer = _answerers(pids)
    return {
        pid: _look(pid, processes, children, without.get(pid), answerer)
        for pid in pids
        if pid in processes
    }


def _answerers(pids: List[int]) -> Callable[[int, Sequence[str]], str]:
    """Return what says who can answer a process on one of these files; connections are read once,
    and only if some process waits for a socket."""
    connections: Dict[str, Connections] = {}
    held: Dict[str, int] = {}

    def answerer(pid: int, files: Sequence[str]) -> str:
        sockets = [file for file in files if file.startswith("socket:")]
        if not sockets:
            return ""
        if not held:
            # Whoever looks may itself serve the ranks, as their store; a rank has what it shares
            # with others, as from its fork.
            held.update({"": 0, **holders([os.getpid(), *pids])})
        space = _link(f"/proc/{pid}/ns/net")
        if space not in connections:
            connections[space] = Connections(pid)
        answerers = [connections[space].answerer(pid, file, held) for file in sockets]
        return max(answerers, key=lambda who: (who == OUTSIDE, bool(who)))

    return answerer


def _look(
    pid: int,
    processes: Dict[int, List[str]],
    children: Dict[int, List[int]],
    not_of: Optional[int],
    answerer: Callable[[int, Sequence[str]], str],
) -> Look:
    below, waiting = [], list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        below.append(child)
        waiting += children.get(child, [])
    fields, wait = processes[pid], _wait(pid, pid)
    threads = [tid for tid in _threads(pid) if tid not in (pid, not_of)]
    targets = [file for tid in threads for file in _wait(pid, tid).targets]
    if wait.call == "epoll":
        wait = wait._replace(targets=_polled(pid, wait.targets))
    who = answerer(pid, wait.targets)
    return Look(
        state=fields[0],
        call=wait.call,
        target=wait.targets[0] if wait.targets and (who or wait.call in _OF_A_FILE) else "",
        cpu=_ticks(fields),
        main_cpu=_ticks(_text(f"/proc/{pid}/task/{pid}/stat").rpartition(")")[2].split()),
        below=sum(_ticks(processes[child]) for child in below),
        io=_bytes(pid, not_of) + sum(_bytes(child, None) for child in below),
        switches=_switches(pid),
        children=tuple(_child(child, processes[child][0], answerer) for child in sorted(below)),
        answering=_state(pid, not_of),
        answerer=who,
        is_limited=wait.is_limited,
        threads_run=any(_state(pid, tid) == "R" for tid in threads),
        threads_outside=answerer(pid, targets) == OUTSIDE,
    )


def _child(pid: int, state: str, answerer: Callable[[int, Sequence[str]], str]) -> ChildLook:
    wait = _wait(pid, pid)
    is_outside = answerer(pid, wait.targets) == OUTSIDE
    return ChildLook(pid, _name(pid), state, wait.call, is_outside, _switches(pid))


def _wait(pid: int, tid: int) -> _Wait:
    """Return what a thread waits in; empty where it runs."""
    words = _text(f"/proc/{pid}/task/{tid}/syscall").split()
    if len(words) < 2 or words[0] == "-1":
        return _Wait()
    number, arguments = int(words[0]), [int(word, 16) for word in words[1:7]]
    call = _CALLS.get(number, "another")
    if call == "select" and not arguments[0]:  # of no file: `time.sleep` before Python 3.11
        return _Wait("sleep")
    at, for_ever = _FOR_EVER.get(call, (0, 0))
    if number == _PPOLL:
        for_ever = 0
    is_limited = at > 0 and len(arguments) > at and arguments[at] & 0xFFFFFFFF != for_ever
    files: List[int] = []
    if call in _OF_A_FILE or call == "epoll":
        files = arguments[:1]
    elif call == "poll" and arguments[1] == 1:  # of several, nobody knows which it needs
        files = _pollfd(pid, arguments[0])
    return _Wait(call, tuple(_link(f"/proc/{pid}/fd/{file}") for file in files), is_limited)


def _pollfd(pid: int, address: int) -> List[int]:
    """Return the file of the one `struct pollfd` at that address."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return [struct.unpack("i", os.pread(memory.fileno(), 4, address))[0]]
    except (OSError, OverflowError, struct.error):  # not ours to see, or it goes on meanwhile
        return []


def _polled(pid: int, targets: Sequence[str]) -> Tuple[str, ...]:
    """Return the files that an epoll waits for, sockets first."""
    files: List[str] = []
    for name in _names(f"/proc/{pid}/fd"):
        if targets and _link(f"/proc/{pid}/fd/{name}") == targets[0]:
            lines = map(str.split, _text(f"/proc/{pid}/fdinfo/{name}").splitlines())
            files += [_link(f"/proc/{pid}/fd/{w[1]}") for w in lines if w[:1] == ["tfd:"]]
    return tuple(sorted(files, key=lambda file: not file.startswith("socket:")))


def _threads(pid: int) -> List[int]:
    return [int(name) for name in _names(f"/proc/{pid}/task")]


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it has ended, or is not ours to see
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _state(pid: int, tid: Optional[int]) -> str:
    return _text(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].strip()[:1]


def request_stack(pid: int, file: Path, call: str) -> bool:
    """Have the main thread of a rank write its stack into a file that the rank has open. Return
    false where the signal would end the process, or cut short the call that it waits in."""
    if call in _CUT_SHORT or not (_catches(pid, STACK_SIGNAL) and _has_open(pid, file)):
        return False
    try:
        os.truncate(str(file), 0)
        os.kill(pid, STACK_SIGNAL)
    except OSError:  # it has just ended
        return False
    return True


def _catches(pid: int, number: int) -> bool:
    lines = _text(f"/proc/{pid}/status").splitlines()
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return number > 0 and bool(int(caught, 16) >> (number - 1) & 1)


def _has_open(pid: int, file: Path) -> bool:
    try:
        wanted = file.stat()
        return any(os.path.samestat(wanted, fd.stat()) for fd in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has ended, or closes one
        return False


def _bytes(pid: int, not_of: Optional[int]) -> int:
    if not_of is None:
        return _of_io(f"/proc/{pid}/io")
    return _of_io(f"/proc/{pid}/io") - _of_io(f"/proc/{pid}/task/{not_of}/io")


def _of_io(path: str) -> int:
    lines = (line.split() for line in _text(path).splitlines())
    return sum(int(words[1]) for words in lines if words[0] in ("rchar:", "wchar:"))


def _switches(pid: int) -> int:
    lines = _text(f"/proc/{pid}/task/{pid}/status").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))


def _ticks(fields: List[str]) -> int:
    return int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0


def _name(pid: int) -> str:
    words = _text(f"/proc/{pid}/cmdline").split("\0")
    return os.path.basename(words[0]) or _text(f"/proc/{pid}/comm").strip()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:  # it has ended, or is not ours to see
        return ""
