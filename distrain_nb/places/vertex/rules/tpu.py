"""TPU pools: one pool, one replica, and a slice that there is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.index import figure, short_name, topologies
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout, ResolvedPool
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair
from distrain_nb.layout.rules.repairs import without_accelerator, without_pool
from distrain_nb.places.vertex.rules import rule

_POD = 32
_CPUS = "n1-standard-4"
_V2, _V3 = "TPU_V2", "TPU_V3"


def _tpu_pools(job: ResolvedLayout) -> list[ResolvedPool]:
    return [resolved for resolved in job.pools if resolved.is_tpu]


@rule("At most one pool has TPUs.", "VERTEX-CC")
def tpu_one_pool(job: ResolvedLayout) -> Iterator[Problem]:
    tpus = _tpu_pools(job)
    for resolved in tpus[1:]:
        yield Problem(
            resolved.where("machine"),
            f"The {tpus[0].role} pool already has TPUs, and a job can have only one such pool.",
            partial(_one_tpu_pool, resolved.role),
        )


def _one_tpu_pool(role: Role) -> Iterator[Repair]:
    yield from without_pool(role)
    bare = at(role, machine=_CPUS, accelerator=None, accelerator_count=0, topology=None)
    yield repair(f"Use {_CPUS} for the {role}", **bare)


@rule("A pool of TPUs has one replica.", "VERTEX-CC")
def tpu_one_replica(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _tpu_pools(job):
        if resolved.pool.replicas > 1:
            yield Problem(
                resolved.where("replicas"),
                f"A pool of TPUs has 1 replica, not {resolved.pool.replicas}; "
                f"a larger slice comes by its topology.",
                partial(_one_replica, resolved),
            )


def _one_replica(resolved: ResolvedPool) -> Iterator[Repair]:
    yield repair(f"Give the {resolved.role} one replica", **at(resolved.role, replicas=1))


@rule("A TPU machine names a topology that it has.", "VERTEX-CC")
def tpu_topology(job: ResolvedLayout) -> Iterator[Problem]:
    slices = topologies(job.catalog)
    for resolved in _tpu_pools(job):
        allowed = [row.topology for row in slices.get(resolved.pool.machine or "", ())]
        if allowed and resolved.pool.topology not in allowed:
            shape = (
                f"has no topology {resolved.pool.topology}"
                if resolved.pool.topology
                else "needs one"
            )
            yield Problem(
                resolved.where("topology"),
                f"{resolved.pool.machine} {shape}: {', '.join(allowed)}.",
                partial(_topologies, resolved, allowed),
            )


def _topologies(resolved: ResolvedPool, allowed: list[str]) -> Iterator[Repair]:
    for topology in allowed:
        yield repair(f"Use the topology {topology}", **at(resolved.role, topology=topology))


@rule(
    "A TPU machine of version 5 or later takes no accelerator: it is built in.",
    "VERTEX-CC",
)
def tpu_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in _tpu_pools(job):
        asked = resolved.pool.accelerator or resolved.pool.accelerator_count
        if asked and resolved.machine and resolved.machine.builtin_accelerator:
            yield Problem(
                resolved.where("accelerator"),
                f"{resolved.pool.machine} comes with its TPUs; choose a topology instead.",
                partial(without_accelerator, resolved),
            )


@rule(
    "cloud-tpu takes TPU_V2 with 8 cores or a multiple of 32, or TPU_V3 with 8 or at least 32.",
    "VERTEX-CC",
)
def tpu_cores(job: ResolvedLayout) -> Iterator[Problem]:
    single = figure(job.catalog, "vertex", "tpu_single_cores")
    for resolved in _tpu_pools(job):
        if resolved.machine and not resolved.machine.builtin_accelerator:
            name, cores = resolved.pool.accelerator, resolved.pool.accelerator_count
            if not _cores_fit(name, cores, single):
                yield Problem(
                    resolved.where("accelerator_count"),
                    f"{resolved.pool.machine} takes TPU_V2 (8 cores, or a multiple of 32) or "
                    f"TPU_V3 (8 cores, or 32 and more), not {cores} x "
                    f"{short_name(name) if name else 'nothing'}.",
                    partial(_cores, resolved, single),
                )


def _cores_fit(name: str | None, cores: int, single: int) -> bool:
    if name not in (_V2, _V3):
        return False
    return cores == single or (cores >= _POD and (name == _V3 or cores % _POD == 0))


def _cores(resolved: ResolvedPool, single: int) -> Iterator[Repair]:
    versions = (
        [resolved.pool.accelerator] if resolved.pool.accelerator in (_V2, _V3) else [_V2, _V3]
    )
    near = max(_POD, resolved.pool.accelerator_count // _POD * _POD)
    for name in versions:
        for cores in dict.fromkeys([single, near, near + _POD]):
            yield repair(
                f"Use {cores} cores of {name}",
                **at(resolved.role, accelerator=name, accelerator_count=cores),
            )
