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
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.pool import Role
from distrain_nb.layout.reduction_server import reduction_pool
from distrain_nb.layout.resolved import resolve

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout
    from distrain_nb.layout.resolved import ResolvedLayout

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
