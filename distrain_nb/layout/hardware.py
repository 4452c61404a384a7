"""The devices of the pools that train, their ranks, and the totals of a layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.catalog.rows import Device
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedPool, resolve

CPU, GPU, TPU, NEURON = "cpu", "gpu", "tpu", "neuron"
AMD64, ARM64 = "linux/amd64", "linux/arm64"

# `ml.p` of `ml.p5.48xlarge`.
_FAMILY = re.compile(r"(ml\.[a-z]+)\d")

# How messages call the kinds.
TITLES = {CPU: "CPU", GPU: "GPU", TPU: "TPU", NEURON: "Neuron device"}


@dataclass(frozen=True)
class Hardware:
    """`device` is the kind, `names` the accelerators by their full names in the tables.

    `count` is how many every training replica has at least, and `processes` how many ranks they
    serve where each rank has devices of its own. `capability` is the least compute capability of
    the GPUs, as far as it is known. `where` is the field of the layout that asks for them.
    """

    device: str = CPU
    names: tuple[str, ...] = ()
    count: int = 0
    processes: int = 0
    capability: float | None = None
    platform: str = AMD64
    where: str = ""

    @property
    def title(self) -> str:
        """`T4`, or the kind where there is no name."""
        return " and ".join(map(short_name, self.names)) or TITLES[self.device]


def hardware_of(layout: Layout) -> Hardware:
    """Return the devices of the pools that train; where only some have any, those, for no rank of
    its own. Of machines to choose from the least that any of them has."""
    pools = [pool for variant in layout.variants() for pool in resolve(variant).training]
    devices = [(pool, device_of(pool)) for pool in pools]
    kind = next((device for _, device in devices if device != CPU), CPU)
    equipped = [pool for pool, device in devices if device == kind]
    if kind == CPU or not equipped:
        return Hardware(platform=platform_of(pools))
    facts = [fact for fact in map(_facts, equipped) if fact]
    counts = [pool.accelerators if device == kind else 0 for pool, device in devices]
    per_device = 0 if kind == TPU else min((row.processes or 1 for row in facts), default=1)
    return Hardware(
        kind,
        tuple(dict.fromkeys(pool.accelerator or "" for pool in equipped if pool.accelerator)),
        min(counts),
        min(counts) * per_device,
        min((row.capability for row in facts if row.capability), default=None),
        platform_of(equipped),
        equipped[0].where("accelerator" if equipped[0].pool.accelerator else "machine"),
    )


def device_of(pool: ResolvedPool) -> str:
    """Return the kind of devices of a pool's machine."""
    name = pool.accelerator or ""
    if not pool.is_in_tables and not name:
        return device_in_name(pool.pool.machine or "") or CPU
    if pool.is_tpu or name.startswith("TPU"):
        return TPU
    if pool.instance and pool.instance.neuron_name:
        return NEURON
    return GPU if name or pool.accelerators else CPU


def device_in_name(machine: str) -> str:
    """Return the kind of devices of the machines in the tables whose names begin as that of one
    that isn't there; empty if none does."""
    match = _FAMILY.match(machine)
    return _families(current()).get(match[1], "") if match else ""


@lru_cache(maxsize=2)
def _families(catalog: Catalog) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for name, row in catalog.instances.items():
        if match := _FAMILY.match(name):
            kind = NEURON if row.neuron_name else GPU if row.gpu_name else CPU
            kinds[match[1]] = kind if kinds.get(match[1], CPU) == CPU else kinds[match[1]]
    return kinds


def _facts(pool: ResolvedPool) -> Device | None:
    return current().devices.get(short_name(pool.accelerator or ""))


def platform_of(pools: Sequence[ResolvedPool]) -> str:
    """Return the platform of images for these machines."""
    hosts = {row.host for row in map(_facts, pools) if row}
    return ARM64 if "arm64" in hosts else AMD64


@dataclass(frozen=True)
class Totals:
    """The totals of a layout; machines that no table has count as nothing and are named.

    `training_gbps` is what the primary and the workers send at most, Gbit/s, and `reduction_gbps`
    what the Reduction Server takes in and gives back. `memory_gb` is in the unit of the place.
    `bare` are the machines, or the roles without one, of which some figure is not known.
    """

    replicas: int
    accelerators: int
    vcpu: int
    memory_gb: float
    memory_unit: str
    training_gbps: float
    reduction_gbps: float
    bare: tuple[str, ...]

    def __str__(self) -> str:
        parts = [
            f"{self.replicas} replica{'s' if self.replicas != 1 else ''}",
            f"{self.accelerators} accelerators",
            f"{self.vcpu} vCPU",
            f"{self.memory_gb:,.6g} {self.memory_unit}",
            f"{self.training_gbps:g} Gbit/s between workers",
        ]
        if self.reduction_gbps:
            parts.append(f"{self.reduction_gbps:g} Gbit/s into reducers")
        if self.bare:
            parts.append(f"not counted: {', '.join(self.bare)}")
        return " · ".join(parts)


def totals(layout: Layout) -> Totals:
    """Return the sums over all pools of a layout. At places without tables only replicas and
    accelerators are counted."""
    job = resolve(layout)
    pools = job.pools
    counted = [
        resolved for resolved in pools if resolved.is_in_tables and resolved.pool.replicas > 0
    ]
    return Totals(
        replicas=sum(max(resolved.pool.replicas, 0) for resolved in pools),
        accelerators=sum(max(pool.pool.replicas, 0) * pool.accelerators for pool in pools),
        vcpu=sum(resolved.pool.replicas * (resolved.vcpu or 0) for resolved in counted),
        memory_gb=sum(resolved.pool.replicas * (resolved.memory_gb or 0) for resolved in counted),
        memory_unit=job.offers.memory_unit if job.offers else "GB",
        training_gbps=_gbps(counted, (Role.PRIMARY, Role.WORKERS)),
        reduction_gbps=_gbps(counted, (Role.REDUCERS,)),
        bare=_bare(pools) if job.offers else (),
    )


def _gbps(pools: Iterable[ResolvedPool], roles: tuple[Role, ...]) -> float:
    return sum(
        resolved.pool.replicas * (resolved.bandwidth_gbps or 0)
        for resolved in pools
        if resolved.role in roles
    )


def _bare(pools: Iterable[ResolvedPool]) -> tuple[str, ...]:
    """Return the machines of which the vCPUs or the bandwidth are not known."""
    return tuple(
        dict.fromkeys(
            resolved.pool.machine or str(resolved.role)
            for resolved in pools
            if resolved.vcpu is None or resolved.bandwidth_gbps is None
        )
    )
