"""What has no meaning on this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.rules.engine import Problem, Repair, repair, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.placed import Job, Placed


@rule(
    "machine-ignored",
    "On local all replicas run on this machine, so a pool is a number of replicas.",
    "",
    on=("local",),
    severity=Severity.WARNING,
)
def machine_ignored(job: Job) -> Iterator[Problem]:
    for placed in job.pools:
        bare = Pool(placed.pool.replicas)
        if placed.pool != bare:
            yield Problem(
                placed.where("machine"),
                f"On local, only the number of {placed.role} counts: "
                f"{placed.pool} is taken as {bare}.",
                partial(_bare, placed, bare),
            )


def _bare(placed: Placed, bare: Pool) -> Iterator[Repair]:
    yield repair(f"Write {bare}", **{placed.role.value: bare})
