"""Requests are held to the service's own model: patterns and lengths too, which boto3 skips."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape

from distrain_nb.rehearsal.errors import ApiError
from distrain_nb.rehearsal.sagemaker_ai.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
# The model writes Java's classes of characters.
_CLASSES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s"}


@cache
def model() -> ServiceModel:
    """The model of SageMaker that boto3 itself works by."""
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")


def check(operation: str, request: Mapping[str, Any]) -> None:
    """Raises ApiError, naming every value that the model doesn't allow."""
    shape = model().operation_model(operation).input_shape
    found = list(_violations(request, shape, "")) if shape else []
    if found:
        errors = "errors" if len(found) > 1 else "error"
        raise invalid(f"{len(found)} validation {errors} detected: " + "; ".join(found))


def _violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    if not _is(value, _TYPES[shape.type_name]):
        raise ApiError(
            "SerializationException",
            f"{path or 'The request'}: {type(value).__name__} can not be converted to "
            f"{shape.type_name}",
        )
    for constraint in _constraints(value, shape):
        yield f"Value '{value}' at '{path}' failed to satisfy constraint: Member must {constraint}"
    if isinstance(shape, StructureShape):
        yield from _of_structure(value, shape, path)
    elif isinstance(shape, ListShape):
        for number, one in enumerate(value, 1):
            yield from _violations(one, shape.member, f"{path}.{number}.member")
    elif isinstance(shape, MapShape):
        yield from _of_map(value, shape, path)


def _is(value: Any, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _of_structure(value: Mapping[str, Any], shape: StructureShape, path: str) -> Iterator[str]:
    for name, member in shape.members.items():
        there = ".".join(filter(None, (path, name[0].lower() + name[1:])))
        if value.get(name) is not None:
            yield from _violations(value[name], member, there)
        elif name in shape.required_members:
            yield (f"Value null at '{there}' failed to satisfy constraint: Member must not be null")


def _of_map(value: Mapping[str, Any], shape: MapShape, path: str) -> Iterator[str]:
    parts = (("keys", shape.key, value), ("value", shape.value, value.values()))
    for what, member, found in parts:
        wrong = {text for one in found for text in _constraints(one, member)}
        if wrong:
            needed = ", ".join(f"Member must {text}" for text in sorted(wrong))
            yield (
                f"Value '{dict(value)}' at '{path}' failed to satisfy constraint: "
                f"Map {what} must satisfy constraint: [{needed}]"
            )


def _constraints(value: Any, shape: Shape) -> Iterator[str]:
    """The constraints that a value fails, as the service words them after `Member must`."""
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    what = "value" if isinstance(value, int | float) else "length"
    size = value if what == "value" else len(value)
    if least is not None and size < least:
        yield f"have {what} greater than or equal to {least}"
    if most is not None and size > most:
        yield f"have {what} less than or equal to {most}"
    if isinstance(shape, StringShape) and isinstance(value, str):
        pattern = shape.metadata.get("pattern")
        if pattern and not _pattern(pattern).fullmatch(value):
            yield f"satisfy regular expression pattern: {pattern}"
        if shape.enum and value not in shape.enum:
            yield f"satisfy enum value set: [{', '.join(shape.enum)}]"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    for java, python in _CLASSES.items():
        text = text.replace(java, python)
    return re.compile(text)
