"""AWS's JSON protocol, version 1.1: a POST names its operation and brings its request as JSON."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from distrain_nb.rehearsal.access import ThreadingOwnServer
from distrain_nb.rehearsal.sagemaker_ai.refusals import Refused
from distrain_nb.rehearsal.sagemaker_ai.shapes import check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # a region and a request make an answer
    Operation = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

_TARGET = "SageMaker."
_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/([a-z0-9-]+)/sagemaker/aws4_request")


@contextmanager
def serve(operations: Mapping[str, Operation]) -> Iterator[str]:
    """Serves the operations on a port of this machine; gives the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                status, said = 200, _answer(operations, self.headers, body)
            except Refused as no:
                status, said = no.status, {"__type": no.code, "message": no.text}
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingOwnServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(operations: Mapping[str, Operation], headers: Any, body: bytes) -> Mapping[str, Any]:
    target = headers.get("X-Amz-Target", "")
    name = target.removeprefix(_TARGET)
    if name not in operations:
        raise Refused("UnknownOperationException", f"A rehearsal doesn't know {target!r}.")
    signed = _SCOPE.search(headers.get("Authorization", ""))
    if signed is None:
        raise Refused("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
    try:
        request = json.loads(body or b"{}")
    except ValueError as wrong:
        raise Refused("SerializationException", str(wrong)) from None
    check(name, request)
    return operations[name](signed[1], request)
