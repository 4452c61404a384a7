"""A layout with the table rows of its machines, as rules and totals need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import bandwidth
from distrain_nb.layout.place import place_of
from distrain_nb.layout.pool import Role

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.rows import Instance, LegacyMachine, Machine
    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.offers import Offers
    from distrain_nb.layout.place import Place
    from distrain_nb.layout.pool import Pool

_TRAINING = (Role.PRIMARY, Role.WORKERS)


@dataclass(frozen=True)
class ResolvedPool:
    """A pool with what the tables know of its machine. Figures are of one replica."""

    role: Role
    pool: Pool
    catalog: Catalog
    machine: Machine | None
    legacy: LegacyMachine | None
    instance: Instance | None
    named_gpus: int = 0  # in words of its place

    def where(self, field: str) -> str:
        """Return the path of a field of this pool."""
        return f"{self.role.value}.{field}"

    @property
    def is_in_tables(self) -> bool:
        """Whether some table has the machine."""
        return bool(self.machine or self.legacy or self.instance)

    @property
    def is_tpu(self) -> bool:
        """Whether the machine is one of TPUs."""
        machine = self.machine
        return machine is not None and (
            machine.series == "cloud-tpu" or machine.builtin_accelerator.startswith("TPU")
        )

    @property
    def accelerator(self) -> str | None:
        """The accelerator of a replica: asked for, or one that comes with the machine."""
        if self.pool.accelerator:
            return self.pool.accelerator
        if self.legacy:
            return self.legacy.accelerator or None
        if self.instance:
            return self.instance.gpu_name or self.instance.neuron_name or None
        return self.machine.builtin_accelerator or None if self.machine and self.is_tpu else None

    @property
    def accelerators(self) -> int:
        """How many accelerators a replica has; for TPU slices, the chips of one machine."""
        if self.pool.accelerator:
            return max(self.pool.accelerator_count, 0)
        if self.legacy:
            return self.legacy.accelerator_count or 0
        if self.instance:
            return self.instance.gpu_count or self.instance.neuron_count or 0
        if self.named_gpus:
            return self.named_gpus
        return (self.machine.builtin_accelerator_count or 0) if self.machine and self.is_tpu else 0

    @property
    def vcpu(self) -> int | None:
        """Virtual CPUs of a replica."""
        if self.legacy:
            return self.legacy.approx_vcpu
        row = self.machine or self.instance
        return row.vcpu if row else None

    @property
    def memory_gb(self) -> float | None:
        """Memory of a replica: GB on Google Cloud, GiB on AWS."""
        if self.legacy:
            return self.legacy.approx_memory_gb
        row = self.machine or self.instance
        return row.memory_gb if row else None

    @property
    def bandwidth_gbps(self) -> float | None:
        """The most that a replica sends, Gbit/s."""
        pool = self.pool
        return bandwidth(self.catalog, pool.machine, pool.accelerator, pool.accelerator_count)


@dataclass(frozen=True)
class ResolvedLayout:
    """A layout, the rows of its machines, and the names of its input channels."""

    layout: Layout
    catalog: Catalog
    pools: tuple[ResolvedPool, ...]
    channels: tuple[str, ...] = ()
    implied: str | None = None

    @property
    def place(self) -> Place | None:
        """The place that the layout is for; None where nobody has declared it."""
        return place_of(self.layout.on)

    @property
    def offers(self) -> Offers | None:
        """What the tables know of the place; None where they know nothing."""
        return self.place.offers if self.place else None

    @property
    def framework(self) -> str | None:
        """The framework's name: as chosen, else what the program's imports imply."""
        return self.layout.framework_name or self.implied

    @cached_property
    def training(self) -> tuple[ResolvedPool, ...]:
        """The pools that train, and exchange gradients: the primary and the workers."""
        return tuple(p for p in self.pools if p.role in _TRAINING)

    def pool(self, role: Role) -> ResolvedPool | None:
        """Return the pool of a role."""
        return next((resolved for resolved in self.pools if resolved.role is role), None)


def resolve(
    layout: Layout,
    channels: Iterable[str] = (),
    catalog: Catalog | None = None,
    implied: str | None = None,
) -> ResolvedLayout:
    """Return the layout with the rows of its machines, from the catalog in force if none is
    given."""
    catalog = catalog or current()
    place = place_of(layout.on)
    read = place.pool_gpus.read if place and place.pool_gpus else lambda _: 0
    pools = tuple(_resolved(role, pool, catalog, read(pool)) for role, pool in layout.pools())
    return ResolvedLayout(layout, catalog, pools, tuple(channels), implied)


def _resolved(role: Role, pool: Pool, catalog: Catalog, named_gpus: int) -> ResolvedPool:
    name = pool.machine or ""
    return ResolvedPool(
        role,
        pool,
        catalog,
        catalog.machines.get(name),
        catalog.legacy_machines.get(name),
        catalog.instances.get(name),
        named_gpus,
    )
