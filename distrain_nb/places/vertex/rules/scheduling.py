"""Scheduling strategies and times."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from distrain_nb.layout.catalog.index import figure, limit, short_name, topologies
from distrain_nb.layout.durations import duration
from distrain_nb.layout.pool import Role
from distrain_nb.layout.resolved import ResolvedLayout
from distrain_nb.layout.rules.engine import Problem, Repair, repair
from distrain_nb.layout.rules.repairs import machines_like, no_limit, standard_scheduling
from distrain_nb.places.vertex.rules import rule, warning

_FLEX = "FLEX_START"
_SINGLE = 8


@rule("The scheduling strategy is one of the API's.", "VERTEX-API")
def strategy_unknown(job: ResolvedLayout) -> Iterator[Problem]:
    name = job.layout.scheduling
    allowed = limit(job.catalog, "vertex", "scheduling_strategies")
    if name and name not in allowed and name not in _deprecated(job):
        yield Problem(
            "scheduling",
            f"{name} is not a scheduling strategy; choose one of {', '.join(allowed)}.",
            lambda: [*standard_scheduling(), repair("Use SPOT", scheduling="SPOT")],
        )


@warning("The scheduling strategy is not one of the deprecated names.", "VERTEX-API")
def strategy_deprecated(job: ResolvedLayout) -> Iterator[Problem]:
    name = job.layout.scheduling or ""
    now = _deprecated(job).get(name)
    if now:
        yield Problem(
            "scheduling",
            f"{name} is deprecated; it is called {now} now.",
            lambda: [repair(f"Use {now}", scheduling=now)],
        )


def _deprecated(job: ResolvedLayout) -> dict[str, str]:
    pairs = limit(job.catalog, "vertex", "scheduling_deprecated")
    return dict(pair.split("=", 1) for pair in pairs)


@rule("With FLEX_START every pool has GPUs of the types that it is offered for.", "VERTEX-DWS")
def flex_start_accelerator(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.scheduling != _FLEX:
        return
    rows = job.catalog.accelerators
    allowed = [short_name(row.accelerator) for row in rows.values() if row.flex_start]
    for resolved in job.pools:
        row = rows.get(resolved.accelerator or "")
        if resolved.role is not Role.REDUCERS and (row is None or not row.flex_start):
            has = short_name(row.accelerator) if row else "no GPU"
            yield Problem(
                resolved.where("accelerator"),
                f"FLEX_START is for {', '.join(allowed)}; the {resolved.role} pool has {has}.",
                standard_scheduling,
            )


@rule("With FLEX_START all pools have the same machines.", "VERTEX-DWS")
def flex_start_same_machines(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.scheduling != _FLEX:
        return
    kinds = {(p.pool.machine, p.pool.accelerator, p.pool.accelerator_count) for p in job.pools}
    if len(kinds) > 1:
        yield Problem(
            "scheduling",
            "FLEX_START needs the same machine type and accelerators in all pools.",
            partial(_same_machines, job),
        )


def _same_machines(job: ResolvedLayout) -> Iterator[Repair]:
    for model in job.pools:
        yield repair(
            f"Give every pool the machines of the {model.role}", **machines_like(model, job.pools)
        )
    yield from standard_scheduling()


@rule("With FLEX_START a job runs for at most 7 days.", "VERTEX-DWS")
def flex_start_timeout(job: ResolvedLayout) -> Iterator[Problem]:
    longest = figure(job.catalog, "vertex", "flex_start_timeout_max")
    timeout = job.layout.timeout
    if job.layout.scheduling == _FLEX and timeout is not None and timeout > longest:
        yield Problem(
            "timeout",
            f"With FLEX_START a job runs for at most {duration(longest)}, not {duration(timeout)}.",
            lambda: [
                repair(f"Stop after {duration(longest)}", timeout=longest),
                *standard_scheduling(),
            ],
        )


@rule("TPU Pods don't run on Spot machines.", "VERTEX-SPOT")
def spot_tpu_pod(job: ResolvedLayout) -> Iterator[Problem]:
    if not job.layout.spot:
        return
    slices = topologies(job.catalog)
    for resolved in job.pools:
        rows = slices.get(resolved.pool.machine or "", ())
        hosts = [row.vms or 1 for row in rows if row.topology == resolved.pool.topology]
        pod = resolved.is_tpu and resolved.pool.accelerator_count > _SINGLE
        if pod or (hosts and min(hosts) > 1):
            yield Problem(
                "scheduling",
                "A TPU Pod can't run on Spot machines; single hosts can.",
                standard_scheduling,
            )


@warning(
    "Machines available only by reservation or as Spot are requested in one of these ways.",
    "VERTEX-CC",
)
def reservation_needed(job: ResolvedLayout) -> Iterator[Problem]:
    for resolved in job.pools:
        row = job.catalog.accelerators.get(resolved.pool.accelerator or "")
        if row and row.reservation_or_spot == "required" and not job.layout.spot:
            yield Problem(
                resolved.where("machine"),
                f"{resolved.pool.machine} is given only to reservations and as Spot.",
                lambda: [repair("Use Spot machines", scheduling="SPOT")],
            )


@warning("Only FLEX_START uses max_wait.", "VERTEX-API")
def max_wait_ignored(job: ResolvedLayout) -> Iterator[Problem]:
    if job.layout.max_wait is not None and job.layout.scheduling != _FLEX:
        yield Problem(
            "max_wait",
            "max_wait has no meaning here: only FLEX_START waits for machines.",
            partial(no_limit, "max_wait"),
        )
