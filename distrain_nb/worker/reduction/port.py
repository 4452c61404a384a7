"""The port of a switch that leads to a host: what comes at once and is more than it queues is lost,
and has to be sent again."""

from __future__ import annotations

import socket

# Many ports hold 1 MB, in which headers and acknowledgements have their part.
PORT_BYTES = 768 << 10
# Less would be sent in packets that are too small.
SMALLEST_SHARE_BYTES = 16 << 10
# What has come is no longer in the port: so much may wait here until it is read. Linux gives no
# more than `net.core.rmem_max` says.
UNREAD_BYTES = 4 << 20


def share(connection: socket.socket, senders: int) -> None:
    """Have no more on its way to this end of a connection than its part of the port, by which so
    many send at once.

    It has to be said again and again: Linux forgets it when it learns how large packets are.
    """
    if hasattr(socket, "TCP_WINDOW_CLAMP"):  # on Linux
        part = max(SMALLEST_SHARE_BYTES, PORT_BYTES // senders)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, part)
