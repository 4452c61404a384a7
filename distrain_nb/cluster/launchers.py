"""Launchers: how the ranks of a job come to life, and which one a program wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# The first of these that a program imports decides; Horovod rides on the others' frameworks.
_WANTED_BY = (
    ("horovod", "mpi"),
    ("mpi4py", "mpi"),
    ("torch", "torchrun"),
    ("lightning", "torchrun"),
    ("accelerate", "torchrun"),
    ("transformers", "torchrun"),
    ("tensorflow", "tensorflow"),
    ("keras", "tensorflow"),
)


def choose(imports: Collection[str]) -> tuple[str, str]:
    """The launcher for a program that imports these modules, and why."""
    for module, launcher in _WANTED_BY:
        if module in imports:
            return launcher, f"the program imports {module}"
    return "python", "the program imports no distributed framework"
