"""Estimates of the traffic of a gradient's exchange: by a ring, by a tree, by reducers.

Source: the Reduction Server article (key GCP-BLOG-RS of the table of sources). With n workers, a
ring all-reduce sends 2(n - 1) of every n elements: the data nearly twice. With reducers, a worker
sends the data once, and the latency does not grow with the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.index import bandwidth, figure, limit
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.pool import Pool, Role
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


# From one machine of a zone to another, with the network's software on both: an assumption.
HOP_S = 50e-6

_BITS = 8
_GIGA = 1e9


@dataclass(frozen=True)
class Links:
    """`workers` machines of `gbps` Gbit/s, and `reducers` of `reducer_gbps` each, where messages
    take `hop_s` seconds from one to another."""

    workers: int
    gbps: float
    reducers: int
    reducer_gbps: float
    hop_s: float = HOP_S


@dataclass(frozen=True)
class Way:
    """A way to add up gradients: bytes that a worker sends, and messages one after another.

    `latency` says how these grow with n workers; `seconds` is the time of both.
    """

    name: str
    bytes_per_worker: float
    hops: int
    latency: str
    seconds: float


@dataclass(frozen=True)
class Traffic:
    """The ways to exchange a gradient of `gradient_bytes` between `workers` machines."""

    gradient_bytes: float
    workers: int
    gbps: float
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        return f"{self._heading()}\n{self.table()}"

    def _repr_html_(self) -> str:
        return f"<p>{self._heading()}</p>{self.table()._repr_html_()}"

    def _heading(self) -> str:
        return (
            f"A gradient of {size(self.gradient_bytes)} between {self.workers} machines "
            f"of {self.gbps:g} Gbit/s each:"
        )

    def table(self) -> Grid:
        """Return the ways, a row each."""
        head = ("all-reduce", "sent per worker", "latency", "about")
        lines = (
            (
                way.name,
                size(way.bytes_per_worker),
                f"{way.hops} hops, {way.latency}",
                f"{way.seconds * 1000:,.1f} ms",
            )
            for way in self.ways
        )
        return Grid(head, tuple(lines))


def traffic(layout: Layout, gradient_bytes: int) -> Traffic:
    """Estimate what the primary and the workers of a layout send for one gradient.

    A tree sends a gradient up and the sum down again. Reducers are those of the layout, or as many
    as `--reducers auto` gives. Raises OptionError if there are fewer than two machines, or the
    bandwidth of one is not known.
    """
    links = links_of(layout)
    if gradient_bytes < 1:
        raise OptionError("gradients have 1 byte or more")
    all_ways = ways(gradient_bytes, links, "Reduction Server")
    return Traffic(gradient_bytes, links.workers, links.gbps, all_ways)


def links_of(layout: Layout) -> Links:
    """Return the machines of a layout that exchange gradients, at the bandwidth of the slowest; its
    reducers, or those that it would get. Raises OptionError as `traffic` does."""
    job = resolve(layout)
    pools = job.training
    workers = sum(resolved.pool.replicas for resolved in pools)
    if workers < 2:
        raise OptionError("gradients are exchanged by 2 or more machines")
    bandwidths = [resolved.bandwidth_gbps for resolved in pools if resolved.bandwidth_gbps]
    if len(bandwidths) < len(pools):
        names = ", ".join(str(p.pool.machine) for p in pools if not p.bandwidth_gbps)
        raise OptionError(f"the bandwidth of {names} is not known")
    reducers, gbps = _reducers(job) or (workers, min(bandwidths))
    return Links(workers, min(bandwidths), reducers, gbps)


def _reducers(job: ResolvedLayout) -> tuple[int, float] | None:
    """Return how many reducers there are or would be, and the bandwidth of each; None if not
    known."""
    sized_pool = job.pool(Role.REDUCERS)
    if sized_pool is None:
        pool = reduction_pool(job)
        sized_pool = (
            resolve(job.layout.edited({"reducers": pool})).pool(Role.REDUCERS) if pool else None
        )
    return (
        (sized_pool.pool.replicas, sized_pool.bandwidth_gbps)
        if sized_pool and sized_pool.bandwidth_gbps
        else None
    )


def ways(gradient_bytes: float, links: Links, name: str = "reducers") -> tuple[Way, Way, Way]:
    """Return a ring, a tree and reducers, which are called `name`.

    A reducer takes in its share of every worker's gradient, so few or slow ones take longer than
    the workers' links do.
    """
    n = links.workers
    shares = n / links.reducers / links.reducer_gbps * links.gbps

    def way(title: str, sent: float, hops: int, latency: str, taken: float = 0.0) -> Way:
        taken = max(sent, taken) * gradient_bytes * _BITS / (links.gbps * _GIGA)
        return Way(title, sent * gradient_bytes, hops, latency, taken + hops * links.hop_s)

    return (
        way("ring", 2 * (n - 1) / n, 2 * (n - 1), "grows with n"),
        way("tree", 2.0, 2 * ceil(log2(n)), "grows with log n"),
        way(name, 1.0, 2, "does not grow", shares),
    )


def size(count: float) -> str:
    """Return bytes in the unit that reads best: `1.34 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"
