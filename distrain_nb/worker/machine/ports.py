"""Ports: one that is free and held until a server listens on it, and listeners on one address."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path
from typing import List

_PORTS = 1 << 16
_PORTS_TRIED = 100
_CHOSEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")  # ip(7): the first and the last


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
