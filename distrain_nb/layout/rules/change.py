"""How much a repair changes: what repairs are ranked by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool

if TYPE_CHECKING:
    # A repair: its label, and the new values by their paths.
    Labelled: TypeAlias = "tuple[str, Mapping[str, Any]]"


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


_VARY = ("machine", "replicas", "accelerator", "accelerator_count")


def place_in(layout: Layout, number: int, where: str) -> str:
    """Return the place in a layout of what is at `where` in its variant of that number."""
    name, _, field = where.partition(".")
    return (
        f"{name}.alternatives"
        if number and field in _VARY and name in pools_with_alternatives(layout)
        else where
    )


def with_machine_name(layout: Layout, number: int, message: str) -> str:
    """Return a message about a variant with the name of its machine."""
    machine = _machine(layout, number)
    return message if number == 0 or machine in message else f"{machine}: {message}"


def combined_repairs(
    layout: Layout, repairs: Mapping[int, Sequence[Labelled]]
) -> Iterator[Labelled]:
    """Yield repairs of a layout from those of its variants, by number: each of them, those of all
    variants together, and the layout without these alternatives."""
    for number, offered in repairs.items():
        for label, changes in offered:
            yield label, _restored(layout, [(number, changes)])
    if len(repairs) > 1:
        for together in zip(*repairs.values(), strict=False):
            labels = dict.fromkeys(label for label, _ in together)
            steps = zip(repairs, (changes for _, changes in together), strict=True)
            yield " and ".join(labels), _restored(layout, steps)
    numbers = [number for number in repairs if number]
    label = f"Leave {' and '.join(_machine(layout, number) for number in numbers)} out"
    yield (
        label,
        {
            f"{n}.alternatives": _without(p, numbers)
            for n, p in pools_with_alternatives(layout).items()
        },
    )


def pools_with_alternatives(layout: Layout) -> dict[str, Pool]:
    """Return the pools that name alternatives to their machine, by role."""
    return {role.value: pool for role, pool in layout.pools() if pool.alternatives}


def _machine(layout: Layout, number: int) -> str:
    return next(
        (pool.taking(number).machine or "" for pool in pools_with_alternatives(layout).values()), ""
    )


def _without(pool: Pool, numbers: Sequence[int]) -> tuple[object, ...]:
    return tuple(it for n, it in enumerate(pool.alternatives, 1) if n not in numbers)


def _restored(layout: Layout, steps: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return changes of variants as changes of the layout: those of machines are changes of its
    alternatives."""
    pools, changes = pools_with_alternatives(layout), dict[str, Any]()
    for number, of_variant in steps:
        for path, value in of_variant.items():
            name, _, field = path.partition(".")
            if number and name in pools and field in ("machine", "replicas"):
                changed = list(changes.get(f"{name}.alternatives", pools[name].alternatives))
                place = min(number, len(changed)) - 1
                changed[place] = replace(changed[place], **{field: value})
                changes[f"{name}.alternatives"] = tuple(changed)
            else:
                changes[path] = value
    return changes
