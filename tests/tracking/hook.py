"""A webhook's server."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

SECRET_PATH = "/services/T0/B0/abcdefghijklmnop"


class Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))  # type: ignore[attr-defined]
        answer = self.server.answers.pop(0) if self.server.answers else 200  # type: ignore[attr-defined]
        self.send_response(answer)
        if answer in (302, 307):
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_hook(tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Iterator[Any]:
    """Serve until the block ends: `url` is where, `got` what came, `answers` those to come."""
    server: Any = HTTPServer((address, 0), Hook)
    server.got, server.answers = [], []
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "https" if tls else "http"
    server.url = f"{scheme}://{address}:{server.server_port}{SECRET_PATH}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
