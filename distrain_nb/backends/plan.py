"""A plan: the exact request that a backend would send for a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from distrain_nb.findings import Finding


class Plan(Protocol):
    """The exact request that `submit` would send. `str` of a plan is the output of `--dry-run`."""

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def ranks_per_replica(self) -> int:
        """How many processes each training replica runs."""

    @property
    def gpus(self) -> int:
        """How many GPUs a training replica has."""

    def __str__(self) -> str: ...


@runtime_checkable
class BuildsImage(Protocol):
    """A plan of a job that runs in an image built for it."""

    def target(self) -> str:
        """Return the image's reference, with placeholders for what is not known yet."""


@runtime_checkable
class InstallsPackages(Protocol):
    """A plan of a job that installs packages."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the requirements of the program. Some may already be in the image."""
