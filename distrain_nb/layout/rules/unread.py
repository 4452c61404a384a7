"""What a layout says and its place doesn't read: nothing is passed over in silence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.findings import Severity
from distrain_nb.layout.options import option_of, texts
from distrain_nb.layout.place import place_of
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.rules.engine import Problem, Repair, repair, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool

_RANKS = ("launcher", "ranks_per_replica")  # what runs depends on them
_OF_THEIR_OWN = ("tier",)  # has a rule of its own, whose repairs know its machines


@rule("ranks-not-here", "The place starts ranks as the layout says.", "")
def ranks_not_here(job: ResolvedLayout) -> Iterator[Problem]:
    yield from (_unread(job, field) for field in _fields(job) if field in _RANKS)


@rule("field-ignored", "The place reads the field.", "", severity=Severity.WARNING)
def field_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    yield from (_unread(job, field) for field in _fields(job) if field not in _RANKS)


def _fields(job: ResolvedLayout) -> Iterator[str]:
    """Yield the fields with a value that the place doesn't read, without pools."""
    place = place_of(job.layout.on)
    for field in texts(job.layout) if place else ():
        own = field in set(Role) or field in _OF_THEIR_OWN
        if place and not own and not place.reads(field):
            yield field


def _unread(job: ResolvedLayout, field: str) -> Problem:
    name = option_of(field).name
    return Problem(
        field,
        f"{name} {texts(job.layout)[field]} has no meaning on {job.layout.title}.",
        lambda: [repair(f"Leave {name} out", **{field: getattr(type(job.layout), field)})],
    )


@rule(
    "machine-ignored",
    "A pool has what the place reads of it; without a cloud that is the number of replicas.",
    "",
    severity=Severity.WARNING,
)
def machine_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    place = place_of(job.layout.on)
    if place is None:
        return
    for resolved in job.pools:
        read = {field: getattr(resolved.pool, field) for field in place.pool_fields}
        bare = Pool(resolved.pool.replicas, **read)
        if resolved.pool != bare:
            yield Problem(
                resolved.where("machine"),
                _counts(place.title, resolved, bare),
                partial(_bare, resolved, bare),
            )


def _counts(title: str, resolved: ResolvedPool, bare: Pool) -> str:
    pool, role = resolved.pool, resolved.role
    if bare == Pool(pool.replicas):
        return f"On {title} only the number of {role} counts: {pool} is taken as {bare}."
    return f"On {title} {pool} is taken as {bare}."


def _bare(resolved: ResolvedPool, bare: Pool) -> Iterator[Repair]:
    yield repair(f"Write {bare}", **{resolved.role.value: bare})
