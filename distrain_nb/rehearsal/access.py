"""Decides who may speak with a rehearsal: its own user, and root.

Its services stand on ports of this machine that any user of it can reach, and they start programs
and keep code and data as their owner. The kernel knows whose the other end of a connection is.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from email.message import Message

    # path, headers and body of a request make a status and a document
    Answer = Callable[[str, Message, bytes], tuple[int, Mapping[str, Any]]]
    Address = tuple[str, int]  # of IPv4, and a port

# The system's lists of sockets, and how they begin an IPv4 address: gRPC speaks it through IPv6.
_SOCKETS = ((Path("/proc/net/tcp"), ""), (Path("/proc/net/tcp6"), "0000000000000000FFFF0000"))
_ESTABLISHED = "01"


class PrivateServer(HTTPServer):
    """Takes no connection of another user of this machine."""

    request_queue_size = 128  # clients that upload many files at once

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        """Return whether the connection may be answered."""
        return is_allowed(request)


class PrivateThreadingServer(PrivateServer, ThreadingHTTPServer):
    """The same, with a thread for each connection."""

    daemon_threads = True


@contextmanager
def serve_json(answer: Answer, content_type: str = "application/json") -> Iterator[int]:
    """Answer GET and POST with JSON on a port of the loopback interface; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, document = answer(self.path, self.headers, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Log nothing: nobody reads it."""

    server = PrivateThreadingServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def is_allowed(connection: socket.socket) -> bool:
    """Return whether the other end of a connection is ours, root's, or of another machine or
    container."""
    try:
        peer, own_end = connection.getpeername(), connection.getsockname()
    except OSError:  # it is closed already
        return False
    owners = _owners(peer[:2], own_end[:2])
    if not owners:
        return peer[0] != own_end[0] or not _are_listed()
    return owners <= {0, os.geteuid()}


def is_ours(peer: Address, own_end: Address) -> bool:
    """Return whether the socket at the other end of a connection of this machine is this user's or
    root's.

    Where the system has no list of sockets, it is taken for ours.
    """
    owners = _owners(peer, own_end)
    return (bool(owners) or not _are_listed()) and owners <= {0, os.geteuid()}


def _are_listed() -> bool:
    return any(path.exists() for path, _ in _SOCKETS)


def _owners(peer: Address, own_end: Address) -> set[int]:
    """Return the user of that connection's other end; none if it is closed, or not of this machine.
    Other connections may have the same port at that end, and other users."""
    ends = [_listed(*end) for end in (peer, own_end)]
    return {
        int(row[7])
        for path, mapped in _SOCKETS
        for row in _rows(path)
        if row[1:4] == [*(mapped + end for end in ends), _ESTABLISHED]
    }


def _listed(host: str, port: int) -> str:
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"


def _rows(path: Path) -> list[list[str]]:
    try:
        return [line.split() for line in path.read_text().splitlines()[1:]]
    except OSError:  # a machine without IPv6
        return []
