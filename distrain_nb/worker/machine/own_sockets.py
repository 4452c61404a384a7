"""The sockets that this process has opened, by descriptor, with what the system calls them.

A descriptor may be another file's by the time that it is to be shut down; the name tells.
"""

from __future__ import annotations

import os
import socket
from typing import Dict, Mapping


def present() -> Dict[int, str]:
    """Return all sockets of this process."""
    names = {int(number): _name(int(number)) for number in os.listdir("/proc/self/fd")}
    return {number: name for number, name in names.items() if name.startswith("socket:")}


def opened_since(before: Mapping[int, str]) -> Dict[int, str]:
    """Return those that were not among `before`."""
    return {number: name for number, name in present().items() if before.get(number) != name}


def shut_down(sockets: Mapping[int, str]) -> None:
    """Shut down connections, as far as they are still those. Listeners stay: gloo ends the process
    when its own breaks."""
    for descriptor, name in sockets.items():
        if _name(descriptor) == name:
            _shut_down(descriptor)


def _name(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # closed
        return ""


def _shut_down(descriptor: int) -> None:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # never connected, or closed meanwhile
        pass
