"""S3, STS and CloudWatch Logs: moto's server, and what a rehearsal lets go wrong in front of it.

`python -m distrain_nb.places.sagemaker.stand_in.aws PORT PERMISSION BUSY` is that server: a
process of its own, so that what it keeps is gone with it.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.stand_in.refusals import ACCOUNT, denial
from distrain_nb.rehearsal.access import PrivateServer
from distrain_nb.rehearsal.engine import processes
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.machine.ports import HeldPort

if TYPE_CHECKING:
    from distrain_nb.rehearsal.faults import Faults

# Who signs a request: the stand-in itself in the job's role, anybody else as the caller.
ROLE_KEY = "role"

_LOGS = "Logs_20140328."
_SECRET = "secretsmanager.GetSecretValue"
_READING = ("GetLogEvents", "FilterLogEvents", "DescribeLogStreams")
_XML = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@contextmanager
def aws(folder: Path, faults: Faults) -> Iterator[str]:
    """Run the services; give the URL that all of them have.

    Raises DistrainError if moto is not installed.
    """
    try:
        import moto.server  # noqa: F401
    except ImportError:
        raise DistrainError(
            "A rehearsal for SageMaker keeps S3 and the logs in moto's server: "
            "`pip install 'distrain-nb[rehearsal]'`."
        ) from None
    held, log = HeldPort(), folder / "aws.txt"
    port = held.number
    command = [sys.executable, "-m", __name__, str(port), faults.permission, str(faults.busy)]
    environment = {**variables(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with processes.service("S3", command, environment, log, partial(_listens, port), 0.0):
        yield f"http://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class FaultyApplication:
    """A WSGI application in front of which some calls are refused."""

    def __init__(self, application: Any, permission: str, busy: int) -> None:
        self._application = application
        self._permission = permission
        self._busy = busy
        self._calls = itertools.count(1)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target.startswith(_LOGS):
            refusal = self._refusal(target.removeprefix(_LOGS))
            if refusal is not None:
                return _respond(start, "400 Bad Request", "application/x-amz-json-1.1", refusal)
        elif target == _SECRET and self._permission == "secretsmanager:GetSecretValue":
            text = f"User is not authorized to perform: {self._permission}"
            refusal = json.dumps({"__type": "AccessDeniedException", "message": text})
            return _respond(start, "400 Bad Request", "application/x-amz-json-1.1", refusal)
        elif self._permission and self._permission == _s3_action(environ):
            return _respond(start, "403 Forbidden", "application/xml", _XML)
        answer: Iterable[bytes] = self._application(environ, start)
        return answer

    def _refusal(self, operation: str) -> str | None:
        if operation not in _READING:
            return None
        action = f"logs:{operation}"
        if action == self._permission:
            group = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"
            text = denial(action, f"{group}:log-stream:")
            return json.dumps({"__type": "AccessDeniedException", "message": text})
        if self._busy and next(self._calls) % self._busy == 0:
            return json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"})
        return None


def _s3_action(environ: dict[str, Any]) -> str:
    """Return the S3 action that a request of the job's role needs; empty for other callers."""
    if f"Credential={ROLE_KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
        return ""
    _, _, key = environ.get("PATH_INFO", "").lstrip("/").partition("/")
    method = environ["REQUEST_METHOD"]
    if not key:
        return "s3:ListBucket" if method == "GET" else ""
    return {"GET": "s3:GetObject", "HEAD": "s3:GetObject"}.get(method, "s3:PutObject")


def _respond(start: Callable[..., Any], status: str, kind: str, text: str) -> Iterable[bytes]:
    data = text.encode()
    start(status, [("Content-Type", kind), ("Content-Length", str(len(data)))])
    return [data]


def main(port: int, permission: str, busy: int) -> None:
    """Serve until the process is ended."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import ThreadedWSGIServer

    class PrivateWSGIServer(PrivateServer, ThreadedWSGIServer):
        """Serves its user alone."""

    application = FaultyApplication(
        DomainDispatcherApplication(create_backend_app), permission, busy
    )
    PrivateWSGIServer("127.0.0.1", port, application).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
