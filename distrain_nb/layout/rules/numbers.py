"""Numbers that are out of range at any place: replicas, ranks, seconds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.durations import duration
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout
from distrain_nb.layout.rules.engine import Problem, Repair, at, named_rule, repair
from distrain_nb.layout.rules.repairs import no_limit


@named_rule("A pool has at least one replica.", "VERTEX-DT-JA;SM-API")
def replicas_positive(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        if resolved.pool.replicas < 1:
            yield Problem(
                resolved.where("replicas"),
                f"The {resolved.role} pool has {resolved.pool.replicas} replicas; it needs 1 or "
                "more.",
                partial(_replicas, resolved.role, -resolved.pool.replicas),
            )


def _replicas(role: Role, meant: int) -> Iterator[Repair]:
    yield repair(f"Give the {role} one replica", **at(role, replicas=1))
    if meant > 1 and role is not Role.PRIMARY:
        yield repair(f"Give the {role} {meant} replicas", **at(role, replicas=meant))
    yield repair(f"Remove the {role}", **{role.value: None})


@named_rule("A replica runs at least one rank.", "SM-SDK")
def ranks_positive(job: ResolvedLayout) -> Iterator[Problem]:
    ranks = job.layout.ranks_per_replica
    if ranks is not None and ranks < 1:
        yield Problem(
            "ranks_per_replica",
            f"{ranks} ranks per replica: it needs 1 or more.",
            lambda: [repair("Run one rank per replica", ranks_per_replica=1)],
        )


@named_rule("A time limit is at least a second.", "VERTEX-API;SM-API")
def timeout_positive(job: ResolvedLayout) -> Iterator[Problem]:
    for field in ("timeout", "max_wait", "signal_before"):
        value = getattr(job.layout, field)
        if value is not None and value < 1:
            yield Problem(
                field,
                f"A time limit of {value} seconds is too short; it is 1 second or more.",
                partial(no_limit, field),
            )


@named_rule("A program is asked to save within its time limit.", "SM-API")
def signal_before(job: ResolvedLayout) -> Iterator[Problem]:
    before, limit = job.layout.signal_before, job.layout.timeout
    if before is not None and limit is not None and before >= limit:
        yield Problem(
            "signal_before",
            f"The program can't be asked {duration(before)} ahead of a limit of {duration(limit)}.",
            lambda: [
                *([repair("Ask it halfway", signal_before=limit // 2)] if limit > 1 else []),
                repair("Don't ask it", signal_before=None),
            ],
        )
