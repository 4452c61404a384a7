"""A registry that answers whatever a test says, as nobody's real registry would."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OCI = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Said:
    """An answer: its body may be longer than memory, or end before its end."""

    body: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": OCI})


Answers = Callable[[str], Said]


@contextlib.contextmanager
def odd_registry(answers: Answers) -> Iterator[tuple[str, list[int]]]:
    """Its host and port, and how many bytes of each body it could send."""
    sent: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = answers(self.path)
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            sent.append(0)
            with contextlib.suppress(OSError):
                for piece in said.body:
                    self.wfile.write(piece)
                    sent[-1] += len(piece)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
