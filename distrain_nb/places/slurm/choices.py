"""What the form and Tab offer of the Slurm cluster that there is."""

from __future__ import annotations

from collections.abc import Iterator

from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.slurm.sinfo import Nodes, fitting_nodes, partitions, parts


def partition_choices(layout: Layout) -> Iterator[Choice]:
    """Yield the partitions; those fit whose nodes are enough for the layout."""
    needed = layout.size or 1
    for partition in partitions().values():
        fits = partition.up and needed <= fitting_nodes(partition, layout)
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
            name, kind, most = parts(held)
            for count in (n for n in range(1, most + 1) if n == most or n & (n - 1) == 0):
                text = ":".join(filter(None, (name, kind, str(count))))
                numbers[text] = numbers.get(text, 0) + nodes.number
    for text, number in numbers.items():
        yield Choice(text, f"{text} · {number} nodes have it")


def _nodes() -> Iterator[Nodes]:
    """Yield the nodes of the cluster, those of several partitions once."""
    partitions_now = partitions().values()
    default = [partition for partition in partitions_now if partition.default]
    for partition in default or list(partitions_now)[:1]:
        yield from partition.nodes
    shown = {
        nodes.gres for partition in default or list(partitions_now)[:1] for nodes in partition.nodes
    }
    for partition in partitions_now:
        yield from (nodes for nodes in partition.nodes if nodes.gres not in shown)
