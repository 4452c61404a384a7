"""AWS's JSON protocol, version 1.1: a POST names its operation and brings its request as JSON."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from distrain_nb.places.sagemaker.stand_in.shapes import check
from distrain_nb.rehearsal.access import serve_json
from distrain_nb.rehearsal.failures import ApiError

if TYPE_CHECKING:
    from email.message import Message

    # a region and a request make an answer
    Operation = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

_log = logging.getLogger(__name__)

_TARGET = "SageMaker."
_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/([a-z0-9-]+)/sagemaker/aws4_request")


@contextmanager
def serve(operations: Mapping[str, Operation]) -> Iterator[str]:
    """Serve the operations on a port of this machine; give the URL."""

    def answer(_: str, headers: Message, body: bytes) -> tuple[int, Mapping[str, Any]]:
        try:
            return 200, _answer(operations, headers, body)
        except ApiError as error:
            _log.info("refused %s: %s: %s", headers.get("X-Amz-Target"), error.code, error.text)
            return error.status, {"__type": error.code, "message": error.text}

    with serve_json(answer, "application/x-amz-json-1.1") as port:
        yield f"http://127.0.0.1:{port}"


def _answer(
    operations: Mapping[str, Operation], headers: Message, body: bytes
) -> Mapping[str, Any]:
    target = headers.get("X-Amz-Target", "")
    name = target.removeprefix(_TARGET)
    if name not in operations:
        raise ApiError("UnknownOperationException", f"A rehearsal does not support {target!r}.")
    signed = _SCOPE.search(headers.get("Authorization", ""))
    if signed is None:
        raise ApiError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
    try:
        request = json.loads(body or b"{}")
    except ValueError as error:
        raise ApiError("SerializationException", str(error)) from None
    check(name, request)
    return operations[name](signed[1], request)
