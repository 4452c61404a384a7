"""The totals of a layout: replicas, accelerators, vCPUs, memory, bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedPool, resolve


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
