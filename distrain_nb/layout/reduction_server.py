"""Sizes a Reduction Server pool, and chooses its image."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.index import bandwidth, figure, limit
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.resolved import resolve

if TYPE_CHECKING:
    from distrain_nb.layout.catalog.tables import Catalog
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.resolved import ResolvedLayout

_NEAREST = {
    "us": ("us", "northamerica", "southamerica"),
    "europe": ("europe", "me", "africa"),
    "asia": ("asia", "australia"),
}


def multi_region(region: str | None) -> str:
    """Return the multi-region nearest to a region: us, europe or asia; us if none is given."""
    continent = (region or "us").partition("-")[0]
    return next((name for name, near in _NEAREST.items() if continent in near), "us")


def reduction_image(catalog: Catalog, region: str | None) -> str:
    """Return the Reduction Server's image in the multi-region nearest to a region."""
    images = limit(catalog, "vertex", "reduction_server_images")
    start = f"{multi_region(region)}-docker"
    return next((image for image in images if image.startswith(start)), images[0])


def training_gbps(job: ResolvedLayout) -> float | None:
    """Return the bandwidth of the primary and the workers together, Gbit/s; None if any is not
    known."""
    total = 0.0
    for resolved in job.training:
        if resolved.bandwidth_gbps is None:
            return None
        total += resolved.bandwidth_gbps * resolved.pool.replicas
    return total


def reduction_pool(job: ResolvedLayout) -> Pool | None:
    """Return the Reduction Server pool that just covers the primary and the workers.

    Of the machines with at least the suggested vCPUs, the one with the fewest vCPUs in total; of
    equal ones the recommended machine, then the one with the least memory. None if the bandwidth
    of the workers is not known, or nothing.
    """
    needed = training_gbps(job)
    if not needed:
        return None
    catalog = job.catalog
    recommended = limit(catalog, "vertex", "reduction_server_machine")[0]
    smallest = figure(catalog, "vertex", "reduction_server_vcpu_min")
    choices = []
    for row in catalog.machines.values():
        gbps = bandwidth(catalog, row.machine_type, None, 0)
        if row.accelerator_required or not row.vertex_training or not gbps or not row.vcpu:
            continue
        if row.vcpu >= smallest:
            replicas = ceil(needed / gbps)
            preference = (row.machine_type != recommended, row.memory_gb or 0, row.machine_type)
            choices.append((replicas * row.vcpu, preference, replicas))
    if not choices:
        return None
    _, (*_, machine), replicas = min(choices)
    return Pool(replicas, str(machine))


def sized_reducers(layout: Layout) -> Pool:
    """Return the pool of `--reducers auto`. Raises OptionError if the workers' bandwidth is
    unknown."""
    pool = reduction_pool(resolve(layout))
    if pool is None:
        raise OptionError(
            "--reducers auto needs a primary and workers on machines whose bandwidth is known; "
            "write the pool itself, for example 16*n1-highcpu-16"
        )
    return pool
