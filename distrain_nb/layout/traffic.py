"""What exchanging a gradient costs on the wire: ring, tree, and the Reduction Server.

From the Reduction Server article (key GCP-BLOG-RS of the table of sources): with n workers, a ring
all-reduce sends 2(n - 1) of every n elements and so the data nearly twice, and the Reduction
Server sends them once, with a latency that does not grow with the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.catalog.lookup import Grid
from distrain_nb.layout.resolved import resolve

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout

_BITS = 8
_GIGA = 1e9


@dataclass(frozen=True)
class Way:
    """A way to add up gradients: bytes that a worker sends, and how latency grows with n workers.

    `seconds` is the least time for these bytes at the worker's bandwidth.
    """

    name: str
    bytes_per_worker: float
    latency: str
    seconds: float


@dataclass(frozen=True)
class Traffic:
    """The ways to exchange a gradient of `gradient_bytes` between `workers` machines."""

    gradient_bytes: int
    workers: int
    gbps: float
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        head = (
            f"A gradient of {size(self.gradient_bytes)} between {self.workers} machines "
            f"of {self.gbps:g} Gbit/s each:"
        )
        return f"{head}\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self) -> Grid:
        """The ways, a row each."""
        head = ("all-reduce", "sent per worker", "latency", "at least")
        lines = (
            (way.name, size(way.bytes_per_worker), way.latency, f"{way.seconds * 1000:,.1f} ms")
            for way in self.ways
        )
        return Grid(head, tuple(lines))


def traffic(layout: Layout, gradient_bytes: int) -> Traffic:
    """What the primary and the workers of a layout send for one gradient.

    A tree sends a gradient up and the sum down again. Raises OptionError if there are fewer than
    two machines, or the bandwidth of one is not known.
    """
    pools = resolve(layout).training
    workers = sum(resolved.pool.replicas for resolved in pools)
    speeds = [resolved.bandwidth_gbps for resolved in pools]
    if workers < 2 or gradient_bytes < 1:
        raise OptionError("gradients are exchanged by 2 or more machines, and have 1 byte or more")
    known = [gbps for gbps in speeds if gbps]
    if len(known) < len(speeds):
        names = ", ".join(str(p.pool.machine) for p in pools if not p.bandwidth_gbps)
        raise OptionError(f"the bandwidth of {names} is not known")
    slowest = min(known)
    ways = (
        ("ring", 2 * (workers - 1) / workers, "grows with n"),
        ("tree", 2.0, "grows with log n"),
        ("Reduction Server", 1.0, "does not grow"),
    )
    return Traffic(
        gradient_bytes,
        workers,
        slowest,
        tuple(
            Way(name, sent * gradient_bytes, latency, _seconds(sent * gradient_bytes, slowest))
            for name, sent, latency in ways
        ),
    )


def _seconds(sent: float, gbps: float) -> float:
    return sent * _BITS / (gbps * _GIGA)


def size(count: float) -> str:
    """Bytes in the unit that reads best: `1.34 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"
