"""TPU pools: one pool, one replica, and a slice that there is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.active import short_name
from distrain_nb.layout.catalog.index import figure, topologies
from distrain_nb.layout.rules.engine import Problem, Repair, at, repair, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout.placed import Job, Placed

_POD = 32
_V2, _V3 = "TPU_V2", "TPU_V3"


def _tpu_pools(job: Job) -> list[Placed]:
    return [placed for placed in job.pools if placed.is_tpu]


@rule("tpu-one-pool", "At most one pool is of TPUs.", "VERTEX-CC", on=("vertex",))
def tpu_one_pool(job: Job) -> Iterator[Problem]:
    tpus = _tpu_pools(job)
    for placed in tpus[1:]:
        yield Problem(
            placed.where("machine"),
            f"The {tpus[0].role} already is a pool of TPUs, and a job can have one.",
            partial(_one_tpu_pool, placed),
        )


def _one_tpu_pool(placed: Placed) -> Iterator[Repair]:
    yield repair(f"Remove the {placed.role}", **{placed.role.value: None})
    yield repair(
        f"Use n1-standard-4 for the {placed.role}",
        **at(
            placed.role, machine="n1-standard-4", accelerator=None, accelerator_count=0,
            topology=None,
        ),
    )  # fmt: skip


@rule("tpu-one-replica", "A pool of TPUs has one replica.", "VERTEX-CC", on=("vertex",))
def tpu_one_replica(job: Job) -> Iterator[Problem]:
    for placed in _tpu_pools(job):
        if placed.pool.replicas > 1:
            yield Problem(
                placed.where("replicas"),
                f"A pool of TPUs has 1 replica, not {placed.pool.replicas}; "
                f"a larger slice comes by its topology.",
                partial(_one_replica, placed),
            )


def _one_replica(placed: Placed) -> Iterator[Repair]:
    yield repair(f"Give the {placed.role} one replica", **at(placed.role, replicas=1))


@rule("tpu-topology", "A TPU machine names a topology that it has.", "VERTEX-CC", on=("vertex",))
def tpu_topology(job: Job) -> Iterator[Problem]:
    slices = topologies(job.catalog)
    for placed in _tpu_pools(job):
        allowed = [row.topology for row in slices.get(placed.pool.machine or "", ())]
        if allowed and placed.pool.topology not in allowed:
            given = (
                f"has no topology {placed.pool.topology}" if placed.pool.topology else "needs one"
            )
            yield Problem(
                placed.where("topology"),
                f"{placed.pool.machine} {given}: {', '.join(allowed)}.",
                partial(_topologies, placed, allowed),
            )


def _topologies(placed: Placed, allowed: list[str]) -> Iterator[Repair]:
    for topology in allowed:
        yield repair(f"Use the topology {topology}", **at(placed.role, topology=topology))


@rule("topology-without-tpu", "Only TPU machines have a topology.", "VERTEX-CC")
def topology_without_tpu(job: Job) -> Iterator[Problem]:
    slices = topologies(job.catalog)
    for placed in job.pools:
        if placed.pool.topology and not (
            job.layout.on == "vertex" and placed.pool.machine in slices
        ):
            yield Problem(
                placed.where("topology"),
                f"{placed.pool.machine or 'This pool'} has no topology.",
                partial(_no_topology, placed),
            )


def _no_topology(placed: Placed) -> Iterator[Repair]:
    yield repair("Remove the topology", **at(placed.role, topology=None))


@rule(
    "tpu-accelerator",
    "A TPU machine of version 5 and later is not given an accelerator: it comes with it.",
    "VERTEX-CC",
    on=("vertex",),
)
def tpu_accelerator(job: Job) -> Iterator[Problem]:
    for placed in _tpu_pools(job):
        asked = placed.pool.accelerator or placed.pool.accelerator_count
        if asked and placed.machine and placed.machine.builtin_accelerator:
            yield Problem(
                placed.where("accelerator"),
                f"{placed.pool.machine} comes with its TPUs; choose a topology instead.",
                partial(_no_accelerator, placed),
            )


def _no_accelerator(placed: Placed) -> Iterator[Repair]:
    yield repair(
        f"Remove the accelerator from the {placed.role}",
        **at(placed.role, accelerator=None, accelerator_count=0),
    )


@rule(
    "tpu-cores",
    "cloud-tpu takes TPU_V2 with 8 cores or a multiple of 32, or TPU_V3 with 8 or at least 32.",
    "VERTEX-CC",
    on=("vertex",),
)
def tpu_cores(job: Job) -> Iterator[Problem]:
    single = figure(job.catalog, "vertex", "tpu_single_cores")
    for placed in _tpu_pools(job):
        if placed.machine and not placed.machine.builtin_accelerator:
            name, cores = placed.pool.accelerator, placed.pool.accelerator_count
            if not _cores_fit(name, cores, single):
                yield Problem(
                    placed.where("accelerator_count"),
                    f"{placed.pool.machine} takes TPU_V2 (8 cores, or a multiple of 32) or TPU_V3 "
                    f"(8 cores, or 32 and more), not {cores} x "
                    f"{short_name(name) if name else 'nothing'}.",
                    partial(_cores, placed, single),
                )


def _cores_fit(name: str | None, cores: int, single: int) -> bool:
    if name not in (_V2, _V3):
        return False
    return cores == single or (cores >= _POD and (name == _V3 or cores % _POD == 0))


def _cores(placed: Placed, single: int) -> Iterator[Repair]:
    versions = [placed.pool.accelerator] if placed.pool.accelerator in (_V2, _V3) else [_V2, _V3]
    near = max(_POD, placed.pool.accelerator_count // _POD * _POD)
    for name in versions:
        for cores in dict.fromkeys([single, near, near + _POD]):
            yield repair(
                f"Use {cores} cores of {name}",
                **at(placed.role, accelerator=name, accelerator_count=cores),
            )
