"""Names of the notebook that code reads, and how they travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.program.gathering.resolve import How
    from distrain_nb.program.values.pickling import PickleTrial


@dataclass(frozen=True)
class Model:
    """A model that is made again, as the program writes it, and the name that leads there."""

    path: str
    root: str


@dataclass(frozen=True)
class Needed:
    """One name of the notebook that travels: how, and the places that use it.

    `trial` is there for values: their size, and what their pickle refers to. `model` has them as
    its weights.
    """

    name: str
    value: Any
    how: How
    where: tuple[str, ...]
    trial: PickleTrial | None = None
    model: Model | None = None
    late: bool = False  # state of a module that the program may not import


@dataclass(frozen=True)
class PendingName:
    """A name that code reads, and where. `required`: without it the code fails."""

    name: str
    where: str
    required: bool
    at_once: bool = True
    deleted: bool = False
