"""Tries code out in a fork of the kernel, where it can change nothing outside the fork."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.program.values.forked import in_fork

if TYPE_CHECKING:
    from collections.abc import Callable

_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events of what reaches beyond the process, which Python raises before it acts. Landlock
# would refuse most of it too, but code may pass over that, and then its result says nothing.
_REACHES_OUT = {
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.utime", "os.kill", "os.system", "os.exec", "os.posix_spawn"),
    *("os.spawn", "os.fork", "os.forkpty", "subprocess.Popen", "shutil.rmtree", "shutil.move"),
    *("socket.connect", "socket.bind", "socket.sendto", "builtins.input", "ftplib.connect"),
    *("signal.pthread_kill", "webbrowser.open", "smtplib.connect", "tempfile.mkstemp"),
    *("tempfile.mkdtemp",),
}
# A fork has none of their threads, and who waits for one waits forever: few seconds are enough to
# run what starts no kernel of theirs.
_HAS_THREADS = ("tensorflow.python", "jax._src.xla_bridge")
_SECONDS_BESIDE_THREADS = 1.5
# Linux's Landlock, by which a process gives up for good what it could change outside itself.
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, alike on all processors
_VERSION = 1  # asks for the version
_NO_NEW_PRIVILEGES = 38  # of prctl; the kernel asks for it
# Write and remove files, and make each kind of them; from version 2 on move, from 3 on truncate.
_WRITE_FILE = 1 << 1
_WRITES = (_WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 1 << 13, 1 << 14)
_CONNECTS, _SIGNALS = 0b11, 0b11  # TCP, from version 4 on; signals and sockets, from 6 on
_SHARED = Path("/proc/self/maps")


class Untried(Exception):
    """Nothing could be learned from a fork; the text says why."""


def tried(work: Callable[[], Any], seconds: float) -> Any:
    """Return what a function gives in a fork of this process, which can write no file, start no
    process and reach no other. The result must be picklable. Raises Untried."""
    if _shares_memory():
        raise Untried("this process shares memory, which a fork would change")
    if any(name in sys.modules for name in _HAS_THREADS):
        seconds = min(seconds, _SECONDS_BESIDE_THREADS)
    answer = in_fork(lambda: _guarded(work), seconds)
    if answer is None:
        raise Untried(f"a fork gave no answer within {seconds:g} s")
    is_result, result = answer
    if not is_result:
        raise Untried(result)
    return result


def _guarded(work: Callable[[], Any]) -> tuple[bool, Any]:
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.dont_write_bytecode = True
    asyncio._set_running_loop(None)  # the kernel's, which doesn't run here
    if not _give_up_writing():
        return False, "this kernel of Linux has no Landlock, which keeps a fork from writing files"
    reached: list[str] = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and _opens_to_write(*arguments)
        if writes or event in _REACHES_OUT:
            reached.append(f"writes {arguments[0]}" if writes else f"calls {event}")
            raise PermissionError(f"a fork that tries code out {reached[-1]}")

    sys.addaudithook(refuse)
    result, reason = None, ""
    try:
        result = work()
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
    if reached:  # the code may have passed over the refusal
        reason = f"it {reached[0]}"
    return (False, reason) if reason else (True, result)


def _opens_to_write(path: Any, _mode: Any, flags: Any) -> bool:
    of_file = not isinstance(path, int) and path != os.devnull
    return of_file and isinstance(flags, int) and bool(flags & _TO_WRITE)


def _shares_memory() -> bool:
    """Return whether a fork could write into memory that others have: shared tensors, mapped
    files. Python's own locks and anonymous memory of this process are no matter."""
    lines = _SHARED.read_text(encoding="utf-8", errors="replace").splitlines()
    shared = [line.split(maxsplit=5) for line in lines if " rw-s " in line]
    paths = [parts[5] for parts in shared if len(parts) > 5]
    harmless = ("/dev/zero", "/dev/shm/sem.")
    return any(path.startswith("/") and not path.startswith(harmless) for path in paths)


def _give_up_writing() -> bool:
    """Have this process write no file and reach no other process from now on; return whether the
    kernel can do that."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
    files = sum(_WRITES[: min(version, 3)])
    rules = struct.pack("Q", files)
    if version >= 4:
        rules += struct.pack("Q", _CONNECTS)
    if version >= 6:
        rules += struct.pack("Q", _SIGNALS)
    ruleset = libc.syscall(_CREATE, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    nowhere = os.open(os.devnull, os.O_RDONLY)
    allowed = struct.pack("=Qi", _WRITE_FILE, nowhere)
    libc.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), allowed, ctypes.c_uint32(0))
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done = libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(nowhere)
    os.close(ruleset)
    return bool(done == 0)
