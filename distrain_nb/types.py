"""Types of what others decide: JSON in a form of theirs, and values that only they know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

# What a user's program makes or takes, and the objects of a cloud's SDK.
Value: TypeAlias = Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import TypeVar

    # To be read; whoever writes it makes a `dict[str, Json]`.
    Json: TypeAlias = "JsonObject | Sequence[Json] | str | float | bool | None"
    R = TypeVar("R", default=Value)
else:
    from typing import TypeVar

    Json = object  # so that `worker.files.fields` reads it as it stands
    R = TypeVar("R")  # a default needs Python 3.13
JsonObject: TypeAlias = "Mapping[str, Json]"

# `P` are the parameters of a user's function, `R` is what it returns: Any where nobody says it.
P = ParamSpec("P")
Function: TypeAlias = "Callable[..., R]"

# The type arguments of a backend that was found by its name.
Unknown: TypeAlias = Any
