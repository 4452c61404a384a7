"""How much a repair changes: what repairs are ranked by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool

_LAYOUT_FIELDS, _POOL_FIELDS = ([it.name for it in fields(kind)] for kind in (Layout, Pool))


class Change(NamedTuple):
    """The difference between two layouts; smaller is better, the first fields count most.

    `lost` counts what was asked for and is gone: pools, their accelerators, choices for the whole
    job. A pool that turns into another is not lost.
    Machines and accelerators are counted by type over the whole job, so that moving a replica from
    one pool to another changes none of them. vCPUs stand for money; beside a machine that no table
    has, or another cloud, neither they nor the bandwidth tell anything.
    """

    lost: int
    machines: int
    accelerators: int
    vcpu: int
    bandwidth_gbps: float
    fields: int


def change(before: ResolvedLayout, after: ResolvedLayout) -> Change:
    """Return how much changes between two layouts."""
    sized = all(_is_measured(before, resolved) for resolved in before.pools)
    return Change(
        max(0, _asked(before) - _asked(after)),
        _apart(_machines(before), _machines(after)),
        _apart(_accelerators(before), _accelerators(after)),
        abs(_vcpu(before) - _vcpu(after)) if sized else 0,
        abs(_bandwidth(before) - _bandwidth(after)) if sized else 0,
        sum(_differ(before.layout, after.layout)),
    )


def _is_measured(job: ResolvedLayout, resolved: ResolvedPool) -> bool:
    """Return whether a pool's figures can be held against those of machines that the place
    offers."""
    return job.offers.knows(resolved) if job.offers else bool(resolved.machine or resolved.legacy)


def _asked(job: ResolvedLayout) -> int:
    """Return how many things were chosen: of the whole job, pools, and of each pool besides its
    size."""
    choices = sum(_differ(job.layout, Layout))
    pools = ((resolved.pool, resolved.pool.replicas != 1) for resolved in job.pools)
    return choices + sum(sum(_differ(pool, Pool)) - is_sized for pool, is_sized in pools)


def _differ(one: Layout | Pool, other: Layout | Pool | type[Layout | Pool]) -> Iterator[bool]:
    """Yield for each field whether it differs from the other's, or from its class's defaults."""
    names = _LAYOUT_FIELDS if isinstance(one, Layout) else _POOL_FIELDS
    return (getattr(one, name) != getattr(other, name) for name in names)


def _apart(before: Counter[str | None], after: Counter[str | None]) -> int:
    return sum(abs(before[name] - after[name]) for name in {*before, *after})


def _machines(job: ResolvedLayout) -> Counter[str | None]:
    counts: Counter[str | None] = Counter()
    for resolved in job.pools:
        counts[resolved.pool.machine] += resolved.pool.replicas
    return counts


def _accelerators(job: ResolvedLayout) -> Counter[str | None]:
    counts: Counter[str | None] = Counter()
    for resolved in job.pools:
        counts[resolved.accelerator] += resolved.pool.replicas * resolved.accelerators
    return counts


def _vcpu(job: ResolvedLayout) -> int:
    return sum(resolved.pool.replicas * (resolved.vcpu or 0) for resolved in job.pools)


def _bandwidth(job: ResolvedLayout) -> float:
    return sum(resolved.pool.replicas * (resolved.bandwidth_gbps or 0) for resolved in job.pools)
