#!/usr/bin/env python3
"""Chromium that hears nothing of network interfaces, with the same arguments.

While interfaces come and go, as other tests' containers and namespaces make them do, Chromium fails
all requests that wait for a connection (`net::ERR_NETWORK_CHANGED`), those to this machine too. The
kernel tells it by netlink sockets, which are refused here; it then takes the network for steady.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

PROGRAM = "/usr/bin/chromium"
SOCKET = {"x86_64": 41, "aarch64": 198}  # the number of that system call
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF
FAIL, ALLOW = 0x00050000, 0x7FFF0000


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_netlink(socket_call: int) -> None:
    """From now on, for this process and all that it starts. Raises OSError."""
    instructions = (
        (LOAD, 0, 0, 0),  # the system call
        (EQUAL, 0, 3, socket_call),
        (LOAD, 0, 0, 16),  # its first argument
        (EQUAL, 0, 1, socket.AF_NETLINK),
        (RETURN, 0, 0, FAIL | errno.EAFNOSUPPORT),
        (RETURN, 0, 0, ALLOW),
    )
    packed = b"".join(struct.pack("HBBI", *each) for each in instructions)
    refusing = _Filter(len(instructions), packed)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SECCOMP, FILTER, ctypes.byref(refusing)):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    if platform.machine() in SOCKET:
        refuse_netlink(SOCKET[platform.machine()])
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
