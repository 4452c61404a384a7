"""What a layout says and its place doesn't read: nothing is passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.index import topologies
from distrain_nb.layout.options import option_of
from distrain_nb.layout.place import place_of
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, named_rule, named_warning, repair
from distrain_nb.layout.rules.replacements import tier_pool
from distrain_nb.layout.text import set_fields, texts

_RANKS = ("launcher", "ranks_per_replica")  # what runs depends on them
# Pools, and a tier, have rules of their own, whose repairs know their machines.
_OF_THEIR_OWN = frozenset([*(role.value for role in Role), "tier"])


@named_rule("The place supports the launcher and the number of ranks.", "")
def ranks_not_here(job: ResolvedLayout) -> Iterator[Problem]:
    yield from (_unread(job, field) for field in _fields(job) if field in _RANKS)


@named_warning("The place uses the field.", "")
def field_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    yield from (_unread(job, field) for field in _fields(job) if field not in _RANKS)


def _fields(job: ResolvedLayout) -> Iterator[str]:
    """Yield the fields with a value that the place doesn't read, without pools."""
    place = place_of(job.layout.on)
    for field in set_fields(job.layout) if place else ():
        if place and field not in _OF_THEIR_OWN and not place.reads(field):
            yield field


def _unread(job: ResolvedLayout, field: str) -> Problem:
    name = option_of(field).name
    return Problem(
        field,
        f"{name} {texts(job.layout)[field]} has no meaning on {job.layout.title}.",
        lambda: [repair(f"Leave {name} out", **{field: getattr(type(job.layout), field)})],
    )


@named_warning(
    "The place uses all fields of a pool; outside clouds it uses the number of replicas.", ""
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


@named_warning("Only AI Platform has scale tiers.", "ML-API")
def tier_elsewhere(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.tier and job.place and not job.place.reads("tier"):
        yield Problem(
            "tier",
            f"The tier {job.layout.tier} has no meaning on {job.layout.title}.",
            partial(_without_tier, job),
        )


def _without_tier(job: ResolvedLayout) -> Iterator[Repair]:
    """Give a layout without such a pool a machine that has the tier's GPU."""
    role = job.offers.whole_job_role if job.offers else None
    with_gpu = [*tier_pool(job, role)] if role and not job.pools else []
    yield from with_gpu or [repair("Remove the tier", tier=None)]


@named_rule("Only TPU machines have a topology.", "VERTEX-CC")
def topology_without_tpu(job: ResolvedLayout) -> Iterator[Problem]:
    slices = topologies(job.catalog)
    for resolved in job.pools:
        read = job.place is None or job.place.reads(resolved.where("topology"))
        if resolved.pool.topology and not (read and resolved.pool.machine in slices):
            yield Problem(
                resolved.where("topology"),
                f"{resolved.pool.machine or 'This pool'} has no topology.",
                partial(_no_topology, resolved),
            )


def _no_topology(resolved: ResolvedPool) -> Iterator[Repair]:
    yield repair("Remove the topology", **at(resolved.role, topology=None))


@named_rule("Options for mpirun need a launcher that runs it.", "SM-SDK;AWS-BLOG-TF")
def mpi_options_without_mpi(job: ResolvedLayout) -> Iterator[Problem]:
    layout = job.layout
    takes = job.offers.runs_mpi(layout) if job.offers else layout.launcher == "mpi"
    if layout.mpi_options and not takes:
        yield Problem(
            "mpi_options",
            "These options are for mpirun, which does not start this job.",
            lambda: [
                repair("Start it with mpi", launcher="mpi", distribution=None),
                repair("Remove the options", mpi_options=None),
            ],
        )
