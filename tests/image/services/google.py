"""Google's default credentials, without Google: a key, and where it is exchanged for a token."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def token_endpoint(answer: dict[str, object]) -> Iterator[str]:
    """An address that gives an access token for a signed request, or an error."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps(answer).encode()
            self.send_response(200 if "access_token" in answer else 400)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/token"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_key(path: Path, endpoint: str) -> None:
    """A service account's key, as the variable GOOGLE_APPLICATION_CREDENTIALS names one."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    account = {
        "type": "service_account",
        "client_email": "me@p.example",
        "private_key": pem.decode(),
        "private_key_id": "1",
        "project_id": "p",
        "token_uri": endpoint,
    }
    path.write_text(json.dumps(account))
