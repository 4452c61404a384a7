"""The devices of the pools that train, and how many ranks they serve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.catalog.rows import Device
from distrain_nb.layout.catalog.tables import Catalog
from distrain_nb.layout.layout import Layout
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
