"""Linux's Landlock: a process gives up for good what it could change outside itself."""

from __future__ import annotations

import ctypes
import os
import struct

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, alike on all processors
_VERSION = 1  # asks for the version
_NO_NEW_PRIVILEGES = 38  # of prctl; the kernel asks for it
# Write and remove files, and make each kind of them; from version 2 on move, from 3 on truncate.
_WRITE_FILE = 1 << 1
_WRITES = (_WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 1 << 13, 1 << 14)
_CONNECTS, _SIGNALS = 0b11, 0b11  # TCP, from version 4 on; signals and sockets, from 6 on


def give_up_writing() -> bool:
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
