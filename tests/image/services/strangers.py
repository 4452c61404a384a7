"""Hosts that answer as a test says, and remember what they were asked."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class Answer:
    """A status with headers and a body."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Host:
    """A host on an address of the loopback interface; `heard` has each request as `METHOD path`
    with its Authorization header, empty where there was none."""

    address: str = ""
    heard: list[tuple[str, str]] = field(default_factory=list)

    @property
    def logins(self) -> set[str]:
        """The Authorization headers that came, but for requests without one."""
        return {login for _, login in self.heard if login}


@contextlib.contextmanager
def host(
    answer: Callable[[str, str], Answer],
    address: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> Iterator[Host]:
    """Serve what `answer` gives for `METHOD path` and the Authorization header."""
    there = Host()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = f"{self.command} {self.path}"
            login = self.headers.get("Authorization", "")
            there.heard.append((asked, login))
            given = answer(asked, login)
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else given.body)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    there.address = f"{address}:{server.server_address[1]}"
    try:
        yield there
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
