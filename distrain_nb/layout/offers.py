"""What a place offers for layouts to choose from, by the fact tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.choices import Choice
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.machine_words import Accelerators
    from distrain_nb.layout.pool import Pool, Role
    from distrain_nb.layout.resolved import ResolvedPool


class GpuMachine(NamedTuple):
    """A machine with the GPUs that it has, or is to be given."""

    machine: str
    gpus: Accelerators


class SdkNames(NamedTuple):
    """Names that the service takes by its installed SDK; `package` is that, with its version."""

    names: frozenset[str] = frozenset()
    package: str = ""


class Offers(ABC):
    """The machines and other choices of a place.

    `default_machine` is taken where nothing says which; machines of `plain_families` have no
    accelerators. With `names_accelerators` a request names accelerators besides the machine.
    `regions` is the form of a region's name, with an example. `memory_unit` is that of the tables.
    `whole_job_role` is the pool that has all of a small job's machines, `server_machine` what
    parameter servers run on; with `hosts_serve` every host runs one of these.
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
        """Return the machine types that the installed SDK of the service lists: it may be newer
        than the tables."""
        return SdkNames()

    def sdk_accelerators(self) -> SdkNames:
        """Return the accelerators that the installed SDK of the service lists."""
        return SdkNames()

    @abstractmethod
    def gpu_machines(self, catalog: Catalog) -> Iterator[GpuMachine]:
        """Yield every machine that has GPUs, with each number of each that it takes."""

    @abstractmethod
    def plain_machines(self, catalog: Catalog) -> list[str]:
        """Return the machines without accelerators that others are replaced by."""

    @abstractmethod
    def knows(self, resolved: ResolvedPool) -> bool:
        """Return whether a pool's figures are comparable with those of the place's machines."""

    @abstractmethod
    def larger(self, pool: Pool, gpus: int) -> Pool | None:
        """Return one machine with so many of a pool's GPUs, or as few more as there are; None if
        there is none."""

    def choices(self, layout: Layout, field: str) -> Iterable[Choice]:
        """Return the values of a field of the layout, such as `region`; empty for any text."""
        del layout, field
        return ()

    def pool_choices(self, layout: Layout, pool: Pool, field: str) -> Iterable[Choice]:
        """Return the values of a field of a pool, such as `topology`; empty for any text."""
        del layout, pool, field
        return ()

    def with_own_accelerators(self, layout: Layout, role: Role) -> Layout:
        """Return the layout whose pool of a role, where it names no accelerator, names the GPUs
        that its machine comes with and that a request has to name."""
        del role
        return layout

    def runs_mpi(self, layout: Layout) -> bool:
        """Return whether mpirun starts the ranks, so that options for it are read."""
        return layout.launcher == "mpi"

    def why_no_reducers(self, *, on_gpus: bool) -> str:
        """Return why a job can't have reducers though the place has them; empty if it can."""
        del on_gpus
        return ""
