"""What botocore's model of the API says of a request's parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import regex
from botocore.model import Shape
from botocore.validate import ParamValidator


@cache
def request_shape(operation: str = "CreateTrainingJob") -> Shape:
    service = botocore.session.get_session().get_service_model("sagemaker")
    return service.operation_model(operation).input_shape


def report(request: dict[str, Any], operation: str = "CreateTrainingJob") -> str:
    """What boto3 would say of it, and of values that no enumeration has; empty if nothing."""
    shape = request_shape(operation)
    found: str = ParamValidator().validate(request, shape).generate_report()
    return "\n".join([found, *_not_listed(request, shape, "")]).strip()


def refused(request: dict[str, Any], operation: str = "CreateTrainingJob") -> set[str]:
    """The places whose size or form the service would refuse, by the model."""
    return set(_refused(request, request_shape(operation), ""))


def _refused(value: Any, shape: Shape, place: str) -> Iterator[str]:
    size = value if isinstance(value, int) else len(value)
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and size < least) or (most is not None and size > most):
        yield place
    pattern = shape.metadata.get("pattern", r"[\S\s]*")
    flags = 0 if r"\p" in pattern else regex.ASCII
    if isinstance(value, str) and not regex.fullmatch(pattern, value, flags):
        yield place
    if shape.type_name == "structure":
        for key, member in value.items():
            yield from _refused(member, shape.members[key], f"{place}.{key}" if place else key)
    elif shape.type_name == "list":
        for member in value:
            yield from _refused(member, shape.member, f"{place}[]")
    elif shape.type_name == "map":
        for key, member in value.items():
            yield from _refused(key, shape.key, f"{place}{{}}")
            yield from _refused(member, shape.value, f"{place}{{}}=")


def _not_listed(value: Any, shape: Shape, place: str) -> Iterator[str]:
    if shape.type_name == "structure":
        for key, member in value.items():
            yield from _not_listed(member, shape.members[key], f"{place}.{key}")
    elif shape.type_name == "list":
        for member in value:
            yield from _not_listed(member, shape.member, f"{place}[]")
    elif "enum" in shape.metadata and value not in shape.metadata["enum"]:
        yield f"{place}: {value!r} is not one of {shape.metadata['enum']}"
