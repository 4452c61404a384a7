"""Which pools a job has: one primary, and only the roles that the place knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from distrain_nb.layout.place import Place, place_of
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.resolved import ResolvedLayout
from distrain_nb.layout.rules.engine import (
    Problem,
    Repair,
    named_rule,
    named_warning,
    names_accelerators,
    repair,
)
from distrain_nb.layout.rules.repairs import without_pool


@named_rule("There is a primary replica.", "VERTEX-DT-JA;ML-API", on=names_accelerators)
def primary_missing(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.primary is None and not job.layout.tier:
        yield Problem(
            "primary",
            "There is no primary replica; a job needs exactly one.",
            partial(_primaries, job),
        )


def _primaries(job: ResolvedLayout) -> Iterator[Repair]:
    workers = job.layout.workers
    if workers:
        first = replace(workers, replicas=1)
        rest = replace(workers, replicas=workers.replicas - 1) if workers.replicas > 1 else None
        yield repair("Make one of the workers the primary", primary=first, workers=rest)
        yield repair(f"Add a primary like the workers, {first}", primary=first)
    yield repair("Add a primary on n1-standard-4", primary=Pool(1, "n1-standard-4"))


@named_rule("The primary pool has exactly one replica.", "VERTEX-DT-JA;AIP-GPU")
def primary_one_replica(job: ResolvedLayout) -> Iterator[Problem]:
    primary = job.layout.primary
    if primary and primary.replicas > 1:
        yield Problem(
            "primary.replicas",
            f"The primary pool has {primary.replicas} replicas; it must have exactly 1.",
            partial(_one_primary, job, primary),
        )


def _one_primary(job: ResolvedLayout, primary: Pool) -> Iterator[Repair]:
    one, others = replace(primary, replicas=1), primary.replicas - 1
    workers = job.layout.workers
    if workers is None:
        rest = replace(primary, replicas=others)
        yield repair(f"Make {others} of them workers", primary=one, workers=rest)
    elif replace(workers, replicas=1) == one:
        rest = replace(workers, replicas=workers.replicas + others)
        yield repair(f"Make {others} of them workers", primary=one, workers=rest)
    yield repair("Keep one primary replica", primary=one)


@named_rule("The place has pools of that role.", "VERTEX-DT-JA;AIP-GPU;SM-SDK")
def role_not_here(job: ResolvedLayout) -> Iterator[Problem]:
    place = place_of(job.layout.on)
    for resolved in job.pools:
        if place and resolved.role not in place.roles:
            why = place.offers.why_no_pool.get(resolved.role, "") if place.offers else ""
            yield Problem(
                resolved.role.value,
                f"{_sentence(place.title)} has no pool of {resolved.role}{why}.",
                partial(without_pool, resolved.role),
            )


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:]


def _has_both(place: Place) -> bool:
    return {Role.SERVERS, Role.REDUCERS} <= set(place.roles)


@named_rule(
    "Parameter servers and the Reduction Server share position 2, so a job has one of them.",
    "VERTEX-DT-JA",
    on=_has_both,
)
def servers_and_reducers(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.servers and job.layout.reducers:
        yield Problem(
            "reducers",
            "Parameter servers and a Reduction Server can't be in one job: both take position 2.",
            lambda: (*without_pool(Role.SERVERS), *without_pool(Role.REDUCERS)),
        )


@named_warning("TensorFlow expects one evaluator.", "VERTEX-DT-JA")
def evaluators_many(job: ResolvedLayout) -> Iterator[Problem]:
    layout, evaluators = job.layout, job.layout.evaluators
    tensorflow = job.framework == "tensorflow" or layout.launcher == "tensorflow"
    if tensorflow and evaluators and evaluators.replicas > 1:
        yield Problem(
            "evaluators.replicas",
            f"There are {evaluators.replicas} evaluators; TensorFlow expects 1.",
            lambda: [repair("Keep one evaluator", evaluators__replicas=1)],
        )


@named_rule(
    "The launcher parameter-server needs a pool of parameter servers.",
    "VERTEX-DT-JA",
    on=names_accelerators,
)
def servers_missing(job: ResolvedLayout) -> Iterator[Problem]:
    layout = job.layout
    if layout.launcher == "parameter-server" and not layout.servers and not layout.tier:
        yield Problem(
            "servers",
            "The launcher parameter-server needs a pool of parameter servers.",
            lambda: [
                repair("Add a parameter server on n1-highmem-8", servers=Pool(1, "n1-highmem-8")),
                repair("Let the launcher be chosen", launcher="auto"),
            ],
        )
