"""What a process waits for, and whether it gets anywhere: read from Linux's /proc, from outside."""

from __future__ import annotations

import os
import platform
import signal
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.machine import system

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


class ChildLook(NamedTuple):
    """A process below another; `state` is the letter of proc(5): T is stopped, Z has ended."""

    pid: int
    name: str
    state: str
    call: str = ""


class Look(NamedTuple):
    """A process at one moment. Counters only grow; `call` is empty where its main thread runs.

    `cpu`, in ticks, is that of all its threads, `main_cpu` of the main one; `below` is the CPU of
    its children; `io` are the bytes that all of them have read and written; `switches` counts how
    often the main thread has given its CPU up. `answering` is the state of the thread that answers.
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


def is_locked_out(looks: Sequence[Look]) -> bool:
    """Return whether the thread of a process that answers has waited, as for the interpreter's
    lock, for which it wakes up every 5 ms. One that is stopped or lacks CPU time does not."""
    return 2 * sum(look.answering == "S" for look in looks) > len(looks)


def look(pids: List[int], without: Dict[int, int]) -> Dict[int, Look]:
    """Return what can be seen of these processes, by their number; `without` names a thread of each
    that doesn't count. Raises OSError where there is no /proc."""
    processes = dict(system.processes())
    if not processes:
        raise OSError("there is no /proc")
    children: Dict[int, List[int]] = {}
    for pid, fields in processes.items():
        children.setdefault(int(fields[1]), []).append(pid)
    return {
        pid: _look(pid, processes, children, without.get(pid)) for pid in pids if pid in processes
    }


def _look(
    pid: int, processes: Dict[int, List[str]], children: Dict[int, List[int]], not_of: Optional[int]
) -> Look:
    below, waiting = [], list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        below.append(child)
        waiting += children.get(child, [])
    fields = processes[pid]
    call, target = _waits_in(pid)
    return Look(
        state=fields[0],
        call=call,
        target=target,
        cpu=_ticks(fields),
        main_cpu=_ticks(_text(f"/proc/{pid}/task/{pid}/stat").rpartition(")")[2].split()),
        below=sum(_ticks(processes[child]) for child in below),
        io=_bytes(pid, not_of) + sum(_bytes(child, None) for child in below),
        switches=_switches(pid),
        children=tuple(_child(child, processes[child][0]) for child in sorted(below)),
        answering=_text(f"/proc/{pid}/task/{not_of}/stat").rpartition(")")[2].strip()[:1],
    )


def _child(pid: int, state: str) -> ChildLook:
    return ChildLook(pid, _name(pid), state, _waits_in(pid)[0])


def _waits_in(pid: int) -> Tuple[str, str]:
    """Return the system call that the main thread waits in, and the file that it waits for."""
    words = _text(f"/proc/{pid}/syscall").split()
    if len(words) < 2 or words[0] == "-1":
        return "", ""
    call = _CALLS.get(int(words[0]), "another")
    if call == "select" and words[1] == "0x0":  # of no file: `time.sleep` before Python 3.11
        call = "sleep"
    target = ""
    if call in _OF_A_FILE:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{int(words[1], 16)}")
        except OSError:
            pass
    return call, target


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


def peer(pid: int, target: str) -> str:
    """Return where `socket:[INODE]` of a process leads to, as `HOST:PORT`; empty if nowhere."""
    inode = target[len("socket:[") : -1]
    for line in _text(f"/proc/{pid}/net/tcp").splitlines()[1:]:
        row = line.split()
        if len(row) > 9 and row[9] == inode:
            host, _, port = row[2].partition(":")
            numbers = [str(int(host[n : n + 2], 16)) for n in (6, 4, 2, 0)]
            return f"{'.'.join(numbers)}:{int(port, 16)}" if int(port, 16) else ""
    return ""


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
