"""AWS's JSON protocol, version 1.1: a POST names its operation and brings its request as JSON.

Requests are held to the service's own model: patterns and lengths too, which boto3 skips.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.model import MapShape, StructureShape

from distrain_nb.places.sagemaker.model import Part, PathStep, failed, parts, request_shape
from distrain_nb.places.sagemaker.stand_in.refusals import invalid
from distrain_nb.rehearsal.access import serve_json
from distrain_nb.rehearsal.failures import ApiError

if TYPE_CHECKING:
    from email.message import Message

    from botocore.model import Shape

    # a region and a request make an answer
    Operation = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float),
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
}


def check(operation: str, request: Mapping[str, Any]) -> None:
    """Raise ApiError, naming every value that the model doesn't allow."""
    shape = request_shape(operation)
    typed = [_typed(part) for part in parts(request, shape)] if shape else []
    violations = [text for part in typed for text in _violations(part)]
    if violations:
        errors = "errors" if len(violations) > 1 else "error"
        raise invalid(f"{len(violations)} validation {errors} detected: " + "; ".join(violations))


def _typed(part: Part) -> Part:
    types = _TYPES[part.shape.type_name]
    if not isinstance(part.value, types) or (isinstance(part.value, bool) and bool not in types):
        raise ApiError(
            "SerializationException",
            f"{_written(part.path) or 'The request'}: {type(part.value).__name__} can not be "
            f"converted to {part.shape.type_name}",
        )
    return part


def _violations(part: Part) -> Iterator[str]:
    """Describe violations in the service's words. Keys and values of a map are named together."""
    path, value, shape = part
    if path and path[-1].kind in ("key", "value"):
        return
    for needed in _needed(value, shape):
        yield _violation(path, f"'{value}'", needed)
    if isinstance(shape, StructureShape):
        for name in shape.required_members:
            if value.get(name) is None:
                yield _violation(
                    (*path, PathStep("member", name)), "null", "Member must not be null"
                )
    elif isinstance(shape, MapShape):
        inner = (("keys", shape.key, value), ("value", shape.value, value.values()))
        for kind, member, values in inner:
            error = sorted(
                {needed for wrong_value in values for needed in _needed(wrong_value, member)}
            )
            if error:
                needed = f"Map {kind} must satisfy constraint: [{', '.join(error)}]"
                yield _violation(path, f"'{value}'", needed)


def _violation(path: Iterable[PathStep], value: str, needed: str) -> str:
    return f"Value {value} at '{_written(path)}' failed to satisfy constraint: {needed}"


def _written(path: Iterable[PathStep]) -> str:
    """Write a path as `inputDataConfig.1.member.channelName`: lists count from 1."""
    steps = (
        f"{name + 1}.member" if isinstance(name, int) else name[:1].lower() + name[1:]
        for _, name in path
    )
    return ".".join(steps)


def _needed(value: Any, shape: Shape) -> Iterator[str]:
    """Yield the constraints that a value fails, in the service's words."""
    measure = "value" if isinstance(value, int | float) else "length"
    for kind, bound in failed(value, shape):
        yield {
            "min": f"Member must have {measure} greater than or equal to {bound}",
            "max": f"Member must have {measure} less than or equal to {bound}",
            "pattern": f"Member must satisfy regular expression pattern: {bound}",
            "enum": f"Member must satisfy enum value set: {bound}",
        }[kind]


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
