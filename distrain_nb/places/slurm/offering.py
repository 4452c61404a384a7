"""What the form and Tab offer of the cluster that there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.layout.choices import Choice
from distrain_nb.places.slurm import sinfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout import Layout
    from distrain_nb.layout.pool import Pool


def partitions(layout: Layout) -> Iterator[Choice]:
    """Yield the partitions; those fit whose nodes are enough for the layout."""
    needed = layout.size or 1
    for partition in sinfo.partitions().values():
        fits = partition.up and needed <= fitting(partition, layout)
        yield Choice(partition.name, f"{partition.name} · {partition}", fits)


def features(layout: Layout) -> Iterator[Choice]:  # noqa: ARG001
    """Yield the features that nodes have."""
    numbers: dict[str, int] = {}
    for nodes in _nodes():
        for feature in nodes.features:
            numbers[feature] = numbers.get(feature, 0) + nodes.number
    for feature, number in numbers.items():
        yield Choice(feature, f"{feature} · {number} nodes")


def gres(layout: Layout, path: str) -> Iterator[Choice]:
    """Yield what nodes have besides CPUs, for the machine of a pool: `gpu:1`, `gpu:a100:2`."""
    if not path.endswith(".machine") or layout.on != "slurm":
        return
    numbers: dict[str, int] = {}
    for nodes in _nodes():
        for held in nodes.gres:
            name, kind, most = sinfo.parts(held)
            for count in (n for n in range(1, most + 1) if n == most or n & (n - 1) == 0):
                text = ":".join(filter(None, (name, kind, str(count))))
                numbers[text] = numbers.get(text, 0) + nodes.number
    for text, number in numbers.items():
        yield Choice(text, f"{text} · {number} nodes have it")


def fitting(partition: sinfo.SlurmPartition, layout: Layout) -> int:
    """Return how many nodes of a partition have what the layout's machines are to have."""
    needed = machines(layout)
    alike = (n.number for n in partition.nodes if all(map(n.has, needed)))
    return min(sum(alike), partition.limit)


def machines(layout: Layout) -> list[str]:
    """Return what the pools of a layout name as machines, each once."""
    pools: list[Pool] = [pool for _, pool in layout.pools()]
    return list(dict.fromkeys(pool.machine for pool in pools if pool.machine))


def _nodes() -> Iterator[sinfo.Nodes]:
    """Yield the nodes of the cluster, those of several partitions once."""
    partitions_now = sinfo.partitions().values()
    default = [partition for partition in partitions_now if partition.default]
    for partition in default or list(partitions_now)[:1]:
        yield from partition.nodes
    shown = {
        nodes.gres for partition in default or list(partitions_now)[:1] for nodes in partition.nodes
    }
    for partition in partitions_now:
        yield from (nodes for nodes in partition.nodes if nodes.gres not in shown)
