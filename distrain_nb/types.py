"""Types of what others decide: JSON in a form of theirs, and values that only they know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # To be read; whoever writes it makes a `dict[str, Json]`.
    Json: TypeAlias = "JsonObject | Sequence[Json] | str | float | bool | None"
else:
    Json = object  # so that `worker.files.fields` reads it as it stands
JsonObject: TypeAlias = "Mapping[str, Json]"

# What a user's program makes or takes, the objects of a cloud's SDK, and a user's function.
Value: TypeAlias = Any
Function: TypeAlias = "Callable[..., Any]"

# The type arguments of a backend that was found by its name.
Unknown: TypeAlias = Any
