"""What has no meaning on this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.rules.engine import Problem, Repair, repair, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool


@rule(
    "machine-ignored",
    "Without a cloud all replicas run on this machine, so a pool is a number of replicas.",
    "",
    on=("local",),
    severity=Severity.WARNING,
)
def machine_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        bare = Pool(resolved.pool.replicas)
        if resolved.pool != bare:
            yield Problem(
                resolved.where("machine"),
                f"On this machine only the number of {resolved.role} counts: "
                f"{resolved.pool} is taken as {bare}.",
                partial(_bare, resolved, bare),
            )


def _bare(resolved: ResolvedPool, bare: Pool) -> Iterator[Repair]:
    yield repair(f"Write {bare}", **{resolved.role.value: bare})
