"""Boot disks: their types and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.index import limit
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, names_accelerators, repair
from distrain_nb.places.vertex.rules import rule


@rule("The boot disk has a type that exists.", "VERTEX-CC;ML-API", on=names_accelerators)
def disk_type(job: ResolvedLayout) -> Iterator[Problem]:
    allowed = limit(job.catalog, job.layout.on, "boot_disk_types")
    for resolved in job.pools:
        if resolved.pool.disk_type and resolved.pool.disk_type not in allowed:
            yield Problem(
                resolved.where("disk_type"),
                f"{resolved.pool.disk_type} is not a boot disk type; "
                f"choose one of {', '.join(allowed)}.",
                partial(_types, resolved, allowed),
            )


def _types(resolved: ResolvedPool, allowed: tuple[str, ...]) -> Iterator[Repair]:
    yield repair("Use the default disk type", **at(resolved.role, disk_type=None))
    for name in allowed:
        yield repair(f"Use {name}", **at(resolved.role, disk_type=name))


@rule("The boot disk has 100 to 64,000 GB.", "VERTEX-CC", on=names_accelerators)
def disk_size(job: ResolvedLayout) -> Iterator[Problem]:
    smallest, largest = map(int, limit(job.catalog, job.layout.on, "boot_disk_gb"))
    for resolved in job.pools:
        size = resolved.pool.disk_gb
        if size is not None and not smallest <= size <= largest:
            nearest = smallest if size < smallest else largest
            yield Problem(
                resolved.where("disk_gb"),
                f"A boot disk of {size} GB is not allowed; choose {smallest} to {largest} GB.",
                partial(_sizes, resolved, nearest),
            )


def _sizes(resolved: ResolvedPool, nearest: int) -> Iterator[Repair]:
    yield repair(f"Use {nearest} GB", **at(resolved.role, disk_gb=nearest))
