"""The partitions of a cluster and their nodes, as `sinfo` and `scontrol` print them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from functools import lru_cache

from distrain_nb.errors import DistrainError
from distrain_nb.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.places.slurm.commands import NODES
from distrain_nb.places.slurm.controller import controller, slurmrestd_settings
from distrain_nb.places.slurm.forms import clock, seconds

KEPT_S = 20.0
_GRES = re.compile(
    r"(?P<name>[A-Za-z]\w*)(?::(?P<type>[^:()]+))??(?::(?P<count>\d+)[KMG]?)?(?:\(.*)?"
)
_IDLE = frozenset(["idle"])


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike: `memory` in MB, `gres` such as `gpu:a100:2`."""

    number: int
    state: str
    cpus: int
    memory: int
    gres: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        return self.state in _IDLE

    def has(self, gres: str) -> bool:
        """Return whether a node has that, such as `gpu:2` or `gpu:a100:1`."""
        name, kind, count = parts(gres)
        held = [parts(text) for text in self.gres]
        return count <= sum(n for of, of_kind, n in held if of == name and kind in ("", of_kind))


@dataclass(frozen=True)
class SlurmPartition:
    """`longest` is the time limit in seconds, `most` how many nodes a job may have; None is no
    limit. `accounts` are those that may use it; empty for all."""

    name: str
    default: bool
    up: bool
    longest: int | None
    most: int | None
    nodes: tuple[Nodes, ...]
    accounts: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(nodes.number for nodes in self.nodes)

    @property
    def idle(self) -> int:
        return sum(nodes.number for nodes in self.nodes if nodes.idle)

    @property
    def limit(self) -> int:
        """How many nodes a job can have."""
        return self.size if self.most is None else min(self.most, self.size)

    def __str__(self) -> str:
        limit = "no time limit" if self.longest is None else f"up to {clock(self.longest)}"
        state = f"{self.idle} of {self.size} nodes idle" if self.up else "down"
        return f"{state}, {limit}"


def read(sinfo: str, scontrol: str = "") -> dict[str, SlurmPartition]:
    """Return the partitions by name, of what `sinfo -o NODES` prints, and what `scontrol show
    partition -o` does. Lines of another form are passed over."""
    partitions: dict[str, SlurmPartition] = {}
    for line in sinfo.splitlines():
        fields = line.split("|")
        if len(fields) != NODES.count("|") + 1:
            continue
        name, marked, up, longest, sizes, number, state, cpus, memory, gres, features = fields
        nodes = Nodes(
            int(number),
            state,
            _number(cpus),
            _number(memory),
            list_parts(gres),
            list_parts(features),
        )
        partition = partitions.get(name) or SlurmPartition(
            name, marked.endswith("*"), up == "up", seconds(longest), _most(sizes), ()
        )
        partitions[name] = replace(partition, nodes=(*partition.nodes, nodes))
    for line in scontrol.splitlines():
        values = dict(part.partition("=")[::2] for part in line.split(" ") if "=" in part)
        limited = partitions.get(values.get("PartitionName", ""))
        accounts = values.get("AllowAccounts", "ALL")
        if limited and accounts != "ALL":
            partitions[limited.name] = replace(limited, accounts=list_parts(accounts))
    return partitions


def parts(gres: str) -> tuple[str, str, int]:
    """Return name, type and number of `gpu:a100:2(S:0-1)`, `gpu:2` or `gpu`."""
    match = _GRES.fullmatch(gres)
    if not match:
        return gres, "", 1
    return match["name"], match["type"] or "", int(match["count"] or 1)


def list_parts(text: str) -> tuple[str, ...]:
    """Return the parts of a list; commas in brackets are none of it."""
    return tuple(filter(None, re.split(r",(?![^(]*\))", text.replace("(null)", ""))))


def cluster_report(url: str, token_file: str) -> tuple[str, str]:
    """Return what `sinfo` and `scontrol show partition` print, or slurmrestd has them print, which
    is kept for some seconds; empty texts where there is no cluster, or no answer."""
    return _printed(url, token_file, int(time.monotonic() / KEPT_S))


@lru_cache(maxsize=1)
def _printed(url: str, token_file: str, turn: int) -> tuple[str, str]:  # noqa: ARG001  (tells one time from the next)
    try:
        return controller(url, token_file).printed()
    except DistrainError:
        return "", ""


def partitions() -> dict[str, SlurmPartition]:
    """Return the partitions of the cluster of the settings; none where it doesn't answer."""
    return read(*cluster_report(*slurmrestd_settings()))


def _number(text: str) -> int:
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _most(sizes: str) -> int | None:
    """Return the upper end of `1-4` or `1-infinite`."""
    upper = sizes.rpartition("-")[2]
    return int(upper) if upper.isdigit() else None


def fitting_nodes(partition: SlurmPartition, layout: Layout) -> int:
    """Return how many nodes of a partition have what the layout's machines are to have."""
    needed = machines(layout)
    alike = (n.number for n in partition.nodes if all(map(n.has, needed)))
    return min(sum(alike), partition.limit)


def machines(layout: Layout) -> list[str]:
    """Return what the pools of a layout name as machines, each once."""
    pools: list[Pool] = [pool for _, pool in layout.pools()]
    return list(dict.fromkeys(pool.machine for pool in pools if pool.machine))
