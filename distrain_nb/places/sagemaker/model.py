"""botocore's model of the API: the sizes and forms in it that boto3 leaves to the service to find.

Needs botocore, which comes with boto3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape

from distrain_nb.places.sagemaker.regions import own_data

# The model writes Java's classes of characters, which `re` does not have.
_CLASSES = {
    r"\p{Alnum}": "a-zA-Z0-9",
    r"\p{L}": r"\w",
    r"\p{N}": r"\w",
    r"\p{Z}": " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
}


class PathStep(NamedTuple):
    """From a value to one inside it: the `member` of a structure or the `item` of a list with that
    name or index, or the `key` of a map, or its `value` there."""

    kind: str
    name: str | int


class Part(NamedTuple):
    """A value in a request, where it stands, and what the model says of it."""

    path: tuple[PathStep, ...]
    value: Any
    shape: Shape


class Constraint(NamedTuple):
    """What a value fails: `min` or `max` (of a number, a text's characters, the members of a list
    or map), `pattern` or `enum`, and what the model has for it."""

    kind: str
    bound: object


@cache
def request_shape(operation: str = "CreateTrainingJob") -> Shape | None:
    """Return the shape of that operation's request in boto3's own model; None for an operation
    without any."""
    service: ServiceModel = own_data().get_service_model("sagemaker")
    return service.operation_model(operation).input_shape


@cache
def instance_types() -> frozenset[str]:
    """Return the instance types of training jobs that the model lists."""
    shape = own_data().get_service_model("sagemaker").shape_for("TrainingInstanceType")
    return frozenset(shape.enum)


def parts(value: Any, shape: Shape, path: tuple[PathStep, ...] = ()) -> Iterator[Part]:
    """Yield the value and all inside it that the model knows, a part before what is inside it."""
    yield Part(path, value, shape)
    for step, inner, its_shape in _inside(value, shape):
        yield from parts(inner, its_shape, (*path, step))


def _inside(value: Any, shape: Shape) -> Iterator[tuple[PathStep, Any, Shape]]:
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield PathStep("member", name), value[name], member
    elif isinstance(shape, ListShape):
        for index, one in enumerate(value):
            yield PathStep("item", index), one, shape.member
    elif isinstance(shape, MapShape):
        for key, one in value.items():
            yield PathStep("key", key), key, shape.key
            yield PathStep("value", key), one, shape.value


def unknown(part: Part) -> list[str]:
    """Return the members of a structure that the model doesn't have."""
    return (
        []
        if not isinstance(part.shape, StructureShape)
        else [name for name in part.value if name not in part.shape.members]
    )


def failed(value: Any, shape: Shape) -> Iterator[Constraint]:
    """Yield the constraints that a value itself fails, which has the shape's type."""
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    size = value if isinstance(value, int | float) else len(value)
    if least is not None and size < least:
        yield Constraint("min", least)
    if most is not None and size > most:
        yield Constraint("max", most)
    if isinstance(shape, StringShape):
        pattern = shape.metadata.get("pattern")
        if pattern and not _pattern(pattern).fullmatch(value):
            yield Constraint("pattern", pattern)
        if shape.enum and value not in shape.enum:
            yield Constraint("enum", f"[{', '.join(shape.enum)}]")


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile it as Java reads it, where `\\w` and `\\d` are ASCII's."""
    flags = 0 if r"\p" in text else re.ASCII
    for java, python in _CLASSES.items():
        text = text.replace(java, python)
    return re.compile(text, flags)
