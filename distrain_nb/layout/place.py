"""The places where jobs run, as layouts know them: what each reads, offers, writes and reads back.

A place of this package declares itself by an entry point of the group `distrain_nb.layouts`, which
is loaded when a layout is for it; a backend of another package by `declare`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from distrain_nb import installed
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.choices import Accelerators, Choice
    from distrain_nb.layout.formats.form import Export, ReadForm
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.pool import Pool
    from distrain_nb.layout.resolved import ResolvedPool


class GpuMachine(NamedTuple):
    """A machine with the GPUs that it has, or is to be given."""

    machine: str
    gpus: Accelerators


class PoolGpus(NamedTuple):
    """How pools of a place without tables name their GPUs: what reads the number that a replica
    has, and what gives a pool another number of any kind."""

    read: Callable[[Pool], int]
    give: Callable[[Pool, int], Pool]


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


GROUP = "distrain_nb.layouts"
# Those whose machines the fact tables know, and this machine, in the order of lists.
PLACES = ("local", "vertex", "sagemaker", "ai-platform")


# The fields of those that start runs again.
RETRIES = ("retries", "retry_on")


@dataclass(frozen=True)
class Successor:
    """The place that takes the layouts of one that has ended.

    `layout` moves a layout there; `error` says why a job can't run, with what to write instead.
    """

    name: str
    layout: Callable[[Layout], Layout]
    error: Callable[[Layout], OptionError]


@dataclass(frozen=True)
class Place:
    """A place where jobs run, as layouts know it.

    `roles` are the pools that its jobs may have, in the order of their positions; `fields` are the
    other fields of a layout that it reads, and `pool_fields` those of a pool besides `replicas`.
    `implies_primary` says that a job whose layout names no primary pool has a primary replica, and
    `tunes` that a service there suggests the trials of studies and runs them. `offers` is what fact
    tables know of its machines, None without tables; `exports` are the forms that its layouts are
    written in, and `readers` those that they are read from. A place that has ended has a
    `successor`. `pool_gpus` reads GPUs that a pool has in words of its place, as `gpu:8`.
    """

    name: str
    title: str
    roles: tuple[Role, ...]
    fields: frozenset[str]
    pool_fields: frozenset[str] = frozenset()
    implies_primary: bool = False
    tunes: bool = False
    offers: Offers | None = None
    exports: tuple[Export, ...] = ()
    readers: tuple[ReadForm, ...] = ()
    successor: Successor | None = None
    pool_gpus: PoolGpus | None = None

    def reads(self, path: str) -> bool:
        """Return whether jobs there depend on a field, such as `region` or `workers.machine`."""
        name, _, field = path.partition(".")
        if field:
            return field == "replicas" or field in self.pool_fields
        return name == "on" or name in self.roles or name in self.fields


_PLACES: dict[str, Place] = {}


def described(
    name: str,
    title: str,
    reads: Iterable[str],
    *,
    implies_primary: bool = False,
    tunes: bool = False,
    exports: tuple[Export, ...] = (),
    readers: tuple[ReadForm, ...] = (),
    pool_gpus: PoolGpus | None = None,
) -> Place:
    """Return a place by the paths of the fields that it reads, as `Place.reads` takes them."""
    paths = [path.partition(".") for path in reads]
    roles = tuple(role for role in Role if role in {name for name, _, _ in paths})
    pool_fields = frozenset(field for _, _, field in paths if field)
    fields = frozenset(name for name, _, field in paths if not field) - set(Role)
    return Place(
        name,
        title,
        roles,
        fields,
        pool_fields,
        implies_primary,
        tunes,
        exports=exports,
        readers=readers,
        pool_gpus=pool_gpus,
    )


def declare(place: Place) -> None:
    """Make the place of another package's backend known. Those of this package stay as they are."""
    if place.name not in installed.points_of(GROUP):
        _PLACES[place.name] = place


def places() -> Mapping[str, Place]:
    """Get all places that are known, by name: those of this package, then those of loaded
    backends."""
    names = dict.fromkeys((*PLACES, *installed.points_of(GROUP)))
    loaded = {name: place for name in names if (place := place_of(name))}
    return {**loaded, **_PLACES}


def place_of(name: str) -> Place | None:
    """Look a place up by its name; None where no backend that is loaded has declared it.

    Raises DistrainError where the package's metadata lacks one of its own places, as that of an
    older installation does: without its rules every layout would fit.
    """
    if name not in _PLACES:
        point = installed.points_of(GROUP).get(name)
        if point is not None:
            _PLACES[name] = point.load()
        elif name in PLACES:
            raise DistrainError(
                f"distrain-nb is not installed as it stands here: its metadata lacks the place "
                f"{name}. Install it again with pip."
            )
    return _PLACES.get(name)


def moved(layout: Layout) -> Layout:
    """Return a layout for the place that succeeds its own, if that one has ended."""
    place = place_of(layout.on)
    return place.successor.layout(layout) if place and place.successor else layout
