"""System calls that fail, for a process and all that it starts."""

from __future__ import annotations

import ctypes
import platform

FLOCK = {"x86_64": 73, "aarch64": 32}[platform.machine()]
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
_FIRST_ARGUMENT = 16  # its offset in what a filter sees of a call; the number of the call is first
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_FAIL, _ALLOW = 0x00050000, 0x7FFF0000


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def fail(call: int, error: int, first: int | None = None) -> None:
    """Have that system call fail with that error number from now on; with `first`, those that have
    this for their first argument."""
    of_argument = (
        _Instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _Instruction(_JUMP_IF_EQUAL, 0, 1, first or 0),
    )
    asked = () if first is None else of_argument
    listed = (
        _Instruction(_LOAD, 0, 0, 0),
        _Instruction(_JUMP_IF_EQUAL, 0, 1 + len(asked), call),
        *asked,
        _Instruction(_RETURN, 0, 0, _FAIL | error),
        _Instruction(_RETURN, 0, 0, _ALLOW),
    )
    instructions = (_Instruction * len(listed))(*listed)
    program = _Program(len(instructions), instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")
