"""What managed notebooks can ask, as small HTTP servers: the metadata server of Compute Engine, and
the calls of SageMaker that describe a domain, its spaces and users, and a notebook instance.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROJECT, ACCOUNT = "of-the-machine", "notebook@of-the-machine.iam.gserviceaccount.com"
ZONE = "projects/1234567890/zones/europe-west4-b"
TOKEN = {"access_token": "of-the-machine", "expires_in": 3000, "token_type": "Bearer"}


@dataclass
class Server:
    """Where it listens, as HOST:PORT, and what it was asked."""

    address: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, str], Any]) -> Iterator[Server]:
    """A server that answers each request with what `answer` gives for it: a status, a body (JSON
    unless it is a text), and headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, body, headers = answer(self, self.rfile.read(length).decode())
            server.asked.append(f"{self.path} {self.headers.get('X-Amz-Target', '')}".strip())
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"127.0.0.1:{http.server_port}")
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


@contextmanager
def metadata_server(attributes: Mapping[str, str], account: str = ACCOUNT) -> Iterator[Server]:
    """That of an instance, by https://cloud.google.com/compute/docs/metadata/querying-metadata: it
    turns away who does not send the header, and says by the same header who it is."""
    known = {
        "/": "computeMetadata/",
        "/project/project-id": PROJECT,
        "/instance/zone": ZONE,
        "/instance/attributes/": "\n".join(attributes),
        **{f"/instance/attributes/{name}": value for name, value in attributes.items()},
    }
    if account:
        known |= {
            "/instance/service-accounts/default/email": account,
            "/instance/service-accounts/default/": {
                "email": account, "aliases": ["default"], "scopes": [],
            },
            f"/instance/service-accounts/{account}/token": TOKEN,
            "/instance/service-accounts/default/token": TOKEN,
        }  # fmt: skip

    def answer(request: BaseHTTPRequestHandler, _: str) -> tuple[int, Any, dict[str, str]]:
        flavor = {"Metadata-Flavor": "Google"}
        path = request.path.partition("?")[0].removeprefix("/computeMetadata/v1")
        if path != "/" and request.headers.get("Metadata-Flavor") != "Google":
            return 403, "Missing Metadata-Flavor:Google header.", flavor
        if path not in known:
            return 404, "not found", flavor
        kind = "application/text" if isinstance(known[path], str) else "application/json"
        return 200, known[path], {**flavor, "Content-Type": kind}

    with serving(answer) as server:
        yield server


@contextmanager
def sagemaker(answers: Mapping[str, Mapping[str, Any]]) -> Iterator[Server]:
    """SageMaker, in the JSON protocol: by operation, what it answers; all else is not allowed."""

    def answer(request: BaseHTTPRequestHandler, body: str) -> tuple[int, Any, dict[str, str]]:
        operation = str(request.headers.get("X-Amz-Target", "")).rpartition(".")[2]
        kind = {"Content-Type": "application/x-amz-json-1.1"}
        if operation in answers:
            return 200, {**json.loads(body), **answers[operation]}, kind
        refused = {"__type": "AccessDeniedException", "Message": f"{operation} is not allowed"}
        return 400, refused, kind

    with serving(answer) as server:
        yield server
