"""Ranks of a layout that are tried alone, on one machine (`--as-rank`): which, and what they know
of the machines that they stand for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.cluster.launchers import framework_of, ranks_per_replica
from distrain_nb.cluster.ranks import Rank, rank_of
from distrain_nb.cluster.spec import Cluster
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Role
from distrain_nb.layout.catalog.index import short_name
from distrain_nb.layout.hardware import GPU, hardware_of
from distrain_nb.layout.resolved import resolve

if TYPE_CHECKING:
    from distrain_nb.program import Program

ALL = "all"
STEPS = 2  # the second has the optimizer's state from its beginning, as all later ones
_WRITTEN = re.compile(r"(\d+)(?:/(\d+))?")
_GB = 1e9
_MOST_LOCAL = 16

_INSTEAD = {
    "jax": (
        "JAX has none. In one process, XLA_FLAGS=--xla_force_host_platform_device_count=8 gives it "
        "8 devices, and jax.jit(step).lower(…).compile().memory_analysis() the memory of a step"
    ),
    "tensorflow": (
        "TensorFlow has none: its strategies wait for all workers. In one process, "
        "tf.config.set_logical_device_configuration gives it several devices"
    ),
    "horovod": "Horovod has none: its ranks need each other",
    "mpi4py": "MPI has none: its ranks need each other",
}
_SAME = {"flax": "jax", "keras": "tensorflow", "tf_keras": "tensorflow"}


@dataclass(frozen=True)
class DryRanks:
    """Ranks of a world, by their numbers in order, with figures of the machine of a replica.

    `devices` is how many GPUs a replica has, `device_bytes` the memory of one and `gbps` what a
    replica sends at most, Gbit/s; None for what no table has.
    """

    tried: tuple[int, ...]
    per_replica: int
    replicas: int
    primaries: int
    steps: int
    devices: int
    device: str
    device_bytes: int | None
    gbps: float | None

    @property
    def world(self) -> int:
        """The number of ranks that there would be."""
        return self.per_replica * self.replicas

    def as_json(self) -> str:
        """Return what each of the ranks is told, as JSON."""
        fields = {
            "tried": self.tried,
            "per_replica": self.per_replica,
            "steps": self.steps,
            "devices": self.devices,
            "device": self.device,
            "device_bytes": self.device_bytes,
            "gbps": self.gbps,
        }
        return json.dumps(fields)

    def placed(self, name: str) -> list[Rank]:
        """Return the ranks with their environments. Nobody listens at the replicas' addresses."""
        hosts = ("127.0.0.1:2222", *(f"replica-{n}.invalid:2222" for n in range(1, self.replicas)))
        pools = {Role.PRIMARY: hosts[: self.primaries], Role.WORKERS: hosts[self.primaries :]}
        addresses = {role: pool for role, pool in pools.items() if pool}
        cluster = Cluster(addresses, name, {})
        return [rank_of(cluster, number, self.per_replica, name) for number in self.tried]


def dry_ranks(text: str, steps: str, program: Program, layout: Layout) -> DryRanks:
    """Return the ranks that `--as-rank` asks for. Raises OptionError."""
    _refuse_frameworks(program)
    hardware = hardware_of(layout)
    devices = hardware.count if hardware.device == GPU else 0
    per_replica = ranks_per_replica(program, layout, hardware.processes or 1)
    primaries = max(1, layout.replicas(Role.PRIMARY))
    replicas = max(1, layout.replicas(Role.PRIMARY) + layout.replicas(Role.WORKERS))
    number, world = _read(text)
    if world is not None:
        replicas, rest = divmod(world, per_replica)
        if rest or not world:
            raise OptionError(
                f"invalid --as-rank {text!r}: a world of {world} doesn't consist of replicas with "
                f"{per_replica} ranks each (-n)"
            )
    world = replicas * per_replica
    if number is not None and number >= world:
        raise OptionError(
            f"invalid --as-rank {text!r}: the layout has {world:,} ranks, 0 to {world - 1}; "
            f"--as-rank {number}/{2 * number} takes a larger world"
        )
    tried = _that_differ(per_replica, replicas) if number is None else tuple(sorted({0, number}))
    return DryRanks(
        tried,
        per_replica,
        replicas,
        min(primaries, replicas),
        int(steps or STEPS),
        devices,
        short_name(hardware.names[0]) if devices and hardware.names else "",
        _device_bytes(layout) if devices else None,
        _gbps(layout),
    )


def _read(text: str) -> tuple[int | None, int | None]:
    """Return the rank, None for all, and the world, None for the layout's."""
    if text == ALL:
        return None, None
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise OptionError(
            f"invalid --as-rank {text!r}: expected a rank, such as 777 or 777/1024, or all"
        )
    return int(match[1]), int(match[2]) if match[2] else None


def _that_differ(per_replica: int, replicas: int) -> tuple[int, ...]:
    """Return those of the first replica, of which each may have a device of its own; the first of
    the second and of the last replica, as roles differ; the last; and all that divide the world.

    A mesh's dimensions multiply to the world. The rank with the number of a dimension's stride is
    the second in it and the first in all others, whatever the mesh, and the last rank is the last
    in all.
    """
    world = per_replica * replicas
    chosen = {*range(min(per_replica, _MOST_LOCAL)), per_replica, world - per_replica, world - 1}
    chosen.update(number for number in range(1, world) if world % number == 0)
    return tuple(sorted(number for number in chosen if number < world))


def _refuse_frameworks(program: Program) -> None:
    """Raise OptionError for a program whose ranks can't run alone, with what there is instead."""
    for name in program.imports:
        root = _SAME.get(name, name)
        is_other = root in ("jax", "tensorflow") and framework_of(program) == "pytorch"
        if root in _INSTEAD and not is_other:
            raise OptionError(
                "--as-rank needs a process group that answers by itself, such as PyTorch's fake: "
                f"{_INSTEAD[root]}",
                where="--as-rank",
            )
    if framework_of(program) != "pytorch":
        raise OptionError("--as-rank runs programs of PyTorch, and this one doesn't import torch")


def _device_bytes(layout: Layout) -> int | None:
    """Return the memory of the smallest device of the pools that train."""
    job = resolve(layout)
    sizes = []
    for pool in job.training:
        row = job.catalog.accelerators.get(pool.accelerator or "")
        size = pool.instance.gpu_memory_gb if pool.instance else row.memory_gb if row else None
        if size:
            sizes.append(size)
    return int(min(sizes) * _GB) if sizes else None


def _gbps(layout: Layout) -> float | None:
    bandwidths = [pool.bandwidth_gbps for pool in resolve(layout).training]
    return min((b for b in bandwidths if b), default=None) if all(bandwidths) else None
