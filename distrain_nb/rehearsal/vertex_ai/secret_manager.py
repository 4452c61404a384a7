"""The metadata server and Secret Manager, as far as a job's worker meets them.

Every secret is there, and its value says that it is a rehearsal's.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from distrain_nb.rehearsal.access import ThreadingOwnServer

if TYPE_CHECKING:
    from collections.abc import Iterator

_ACCOUNT = "rehearsal"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
_VERSION = re.compile(r"/v1/(projects/[^/]+/secrets/([^/]+)/versions/[^/:]+):access")
PERMISSION = "secretmanager.versions.access"


def value_of(secret: str) -> str:
    """What a rehearsal gives for the secret of that name."""
    return f"rehearsal of {secret}"


@contextmanager
def secret_manager(permission: str) -> Iterator[int]:
    """Serve both; gives the port. `permission` is the one that the job lacks."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, answer = _answer(self.path, dict(self.headers.items()), permission)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingOwnServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, name="secrets", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _answer(path: str, headers: dict[str, str], permission: str) -> tuple[int, dict[str, Any]]:
    if path == _TOKEN and headers.get("Metadata-Flavor") == "Google":
        return 200, {"access_token": _ACCOUNT, "expires_in": 3599, "token_type": "Bearer"}
    found = _VERSION.fullmatch(path)
    if found is None:
        return 404, _error(404, f"{path} is not here.")
    if headers.get("Authorization") != f"Bearer {_ACCOUNT}":
        return 401, _error(401, "Request is missing required authentication credential.")
    if permission == PERMISSION:
        return 403, _error(403, f"Permission '{PERMISSION}' denied for resource '{found[1]}'.")
    data = base64.b64encode(value_of(found[2]).encode()).decode()
    return 200, {"name": found[1], "payload": {"data": data}}


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
