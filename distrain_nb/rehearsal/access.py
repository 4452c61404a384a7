"""Decides who may speak with a rehearsal: its own user, and root.

Its services stand on ports of this machine that any user of it can reach, and they start programs
and keep code and data as their owner. The kernel knows whose the other end of a connection is.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from distrain_nb.worker.machine.sockets import Address, owner

if TYPE_CHECKING:
    from email.message import Message

    # path, headers and body of a request make a status and a document
    Answer = Callable[[str, Message, bytes], tuple[int, Mapping[str, Any]]]


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
        peer, own_end = connection.getpeername()[:2], connection.getsockname()[:2]
    except OSError:  # it is closed already
        return False
    try:
        user = owner(peer, own_end)
    except OSError:
        return True
    return peer[0] != own_end[0] if user is None else user in {0, os.geteuid()}


def is_ours(peer: Address, own_end: Address) -> bool:
    """Return whether the socket at the other end of a connection of this machine is this user's or
    root's.

    Where the system doesn't say, it is taken for ours.
    """
    try:
        return owner(peer, own_end) in {0, os.geteuid()}
    except OSError:
        return True
