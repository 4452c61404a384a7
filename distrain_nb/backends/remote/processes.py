"""The processes that the log of a job will tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.worker.files.status import Process
from distrain_nb.worker.replica.replica import TRAINING_ROLES, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout import Layout


def processes_of(layout: Layout, per_replica: int) -> Iterator[Process]:
    """Yield the processes of a layout with so many ranks on each training replica, those of the
    world first."""
    members = [(r.value, i) for r, pool in layout.pools() for i in range(pool.replicas)]
    world = [member for member in members if member[0] in TRAINING_ROLES]
    ranks = [(*member, n) for member in world for n in range(per_replica)]
    others = [(*member, None) for member in members if member[0] not in TRAINING_ROLES]
    for index, (role, replica, _) in enumerate([*ranks, *others]):
        rank = index if index < len(ranks) else None
        yield Process(index, label(role, replica, rank), role, replica, rank)
