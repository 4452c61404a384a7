"""Requests held to the shapes of the service's own model: patterns and lengths too, which boto3
skips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.model import MapShape, StructureShape

from distrain_nb.places.sagemaker.model import Part, PathStep, failed, parts, request_shape
from distrain_nb.places.sagemaker.stand_in.refusals import invalid
from distrain_nb.rehearsal.failures import ApiError

if TYPE_CHECKING:
    from botocore.model import Shape

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
