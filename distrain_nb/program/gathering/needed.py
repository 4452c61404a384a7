"""Names of the notebook that code reads, and how they travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distrain_nb.program.gathering.resolve import How
    from distrain_nb.program.notebook.history import Executed
    from distrain_nb.program.values.pickling import PickleTrial


@dataclass(frozen=True)
class Needed:
    """One name of the notebook that travels: how, and the places that use it.

    `trial` is there for values: their size, and what their pickle refers to. Those that are part of
    what another name stands for, its `root`, are weights of a `model`, as the program writes it, or
    attributes. `first` are statements that give the name while definitions are made that the value
    holds.
    """

    name: str
    value: Any
    how: How
    where: tuple[str, ...]
    trial: PickleTrial | None = None
    root: str = ""
    model: str = ""
    first: tuple[Executed, ...] = ()
    late: bool = False  # state of a module that the program may not import


@dataclass(frozen=True)
class PendingName:
    """A name that code reads, and where. `required`: without it the code fails."""

    name: str
    where: str
    required: bool
    at_once: bool = True
    deleted: bool = False
