"""What a job is going to cost: for `--dry-run`, for `--max-cost`, and for the folder of its run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from distrain_nb.backends.base import Backend
from distrain_nb.backends.cost import RunCost, cost_limit_reason
from distrain_nb.backends.price import Money, NoPrice
from distrain_nb.backends.price_file import own_price
from distrain_nb.backends.price_lookup import LOOKUP
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.backends.job import AnyJob
    from distrain_nb.backends.plan import Plan
    from distrain_nb.options import JobOptions

WAITED_S, LOOKED_S = 30.0, 8.0  # for a price: by `--max-cost`, and by `--dry-run`
NOTHING = "a rehearsal costs nothing"


def cost_of(options: JobOptions, job: AnyJob, backend: AnyBackend, plan: Plan) -> RunCost | None:
    """Return what a run is to know of its cost; None where nobody has a price of its place. A price
    that isn't here yet is asked for by the run's carrier: only `--max-cost` and `--dry-run` wait.

    Raises OptionError for a `--max-cost` that can't be kept.
    """
    limit = Money.parse(options.max_cost) if options.max_cost else None
    if getattr(job.options, "rehearsed", False):
        if limit:
            raise OptionError(f"--max-cost {options.max_cost} has no meaning here: {NOTHING}")
        return None
    cost = RunCost(str(job.layout), plan.gpus, backend.paid_phases)
    if limit:
        try:
            price = LOOKUP.within(WAITED_S, job.layout, plan.gpus)
            price.seconds_until(limit)
        except NoPrice as error:
            raise OptionError(f"--max-cost {options.max_cost} can't be kept: {error}") from None
        return replace(cost.at(price), limit=limit.amount)
    has_list = type(backend).price is not Backend.price
    if has_list and not options.dry_run:
        return cost
    try:
        if has_list:
            return cost.at(LOOKUP.within(LOOKED_S, job.layout, plan.gpus))
        user_price = own_price(job.layout.variants()[0], plan.gpus)
    except NoPrice as error:
        return cost.at(error)
    return cost.at(user_price) if user_price else None


def with_limit(job: AnyJob, cost: RunCost) -> AnyJob:
    """Return a job of this machine that ends where it has cost what it may."""
    limit = Money(cost.limit, cost.currency)
    seconds = cost.price.seconds_until(limit) if cost.price else math.inf
    return (
        replace(job, cost_limit=(seconds, cost_limit_reason(limit)))
        if math.isfinite(seconds)
        else job
    )


def costs_text(cost: RunCost, layout: Layout) -> Iterator[str]:
    """Yield the lines of `--dry-run` about the cost."""
    if cost.price is None:
        yield f"Cost: price not known: {cost.why}"
        return
    most = "at most " if cost.ceiling else ""
    parts = [f"{most}{cost.price.per_hour} per hour"]
    if layout.timeout:
        parts.append(f"{most}{cost.price.during(layout.timeout)} for the time limit")
    if cost.limit:
        parts.append(f"stopped at {Money(cost.limit, cost.currency)}")
    if cost.note:
        parts.append(cost.note)
    yield f"Cost, by {cost.source}: {'; '.join(parts)}"
