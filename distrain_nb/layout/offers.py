"""What a place offers for layouts to choose from: machines, accelerators, other choices."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.choices import Choice
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.machine_words import Accelerators
    from distrain_nb.layout.pool import Pool
    from distrain_nb.layout.resolved import ResolvedPool


class GpuMachine(NamedTuple):
    """A machine with its GPUs, or with GPUs to add."""

    machine: str
    gpus: Accelerators


class SdkNames(NamedTuple):
    """Names that the installed SDK of a service knows. `package` is the SDK with its version."""

    names: frozenset[str] = frozenset()
    package: str = ""


class Offers(ABC):
    """The machines and other choices of a place.

    `default_machine` is taken if nothing names one. Machines of `plain_families` have no
    accelerators. With `names_accelerators`, a request names accelerators besides the machine.
    `regions` is the form of a region's name, with an example. `memory_unit` is the unit of the
    tables. `whole_job_role` is the one pool of a small job. Parameter servers run on a
    `server_machine`. With `hosts_serve`, every host has a parameter server.
    """

    default_machine: ClassVar[str]
    plain_families: ClassVar[tuple[str, ...]]
    names_accelerators: ClassVar[bool] = False
    regions: ClassVar[tuple[re.Pattern[str], str]]
    memory_unit: ClassVar[str] = "GB"
    whole_job_role: ClassVar[Role]
    server_machine: ClassVar[str | None] = None
    hosts_serve: ClassVar[bool] = False
    # Why a pool of a role isn't there, behind "has no pool of ROLE".
    why_no_pool: ClassVar[Mapping[Role, str]] = {}

    @abstractmethod
    def machines(self, catalog: Catalog) -> Mapping[str, None]:
        """Return the machine types for training, in the order of the tables."""

    def sdk_machines(self) -> SdkNames:
        """Return the machine types of the installed SDK, which may be newer than the tables."""
        return SdkNames()

    def sdk_accelerators(self) -> SdkNames:
        """Return the accelerators of the service's installed SDK."""
        return SdkNames()

    @abstractmethod
    def gpu_machines(self, catalog: Catalog) -> Iterator[GpuMachine]:
        """Yield every machine with GPUs, once for each kind and number of GPUs that it can have."""

    @abstractmethod
    def plain_machines(self, catalog: Catalog) -> list[str]:
        """Return the machines without accelerators that repairs offer."""

    @abstractmethod
    def knows(self, resolved: ResolvedPool) -> bool:
        """Return whether a pool's figures can be compared with those of the place's machines."""

    @abstractmethod
    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        """Return one machine with at least so many of a pool's GPUs; None if there is none."""

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        """Return the values of a field of the layout, such as `region`; empty for any text."""
        del layout, field
        return ()

    def pool_choices(self, layout: Layout, pool: Pool, field: str) -> Iterable[Choice]:
        """Return the values of a field of a pool, such as `topology`; empty for any text."""
        del layout, pool, field
        return ()

    def with_own_accelerators(self, layout: Layout, role: Role) -> Layout:
        """Return the layout with the GPUs that come with a machine named in its pool.

        They are added if the pool names no accelerator and a request has to name one.
        """
        del role
        return layout

    def runs_mpi(self, layout: Layout) -> bool:
        """Return whether mpirun starts the ranks, so that its options are read."""
        return layout.launcher == "mpi"

    def why_no_reducers(self, *, on_gpus: bool) -> str:
        """Return why a job can't have the place's reducers; empty if it can."""
        del on_gpus
        return ""
