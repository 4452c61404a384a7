"""The watch over the cost of a run: it learns the price, and stops the run at `--max-cost`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from distrain_nb.backends.cost import RunCost
from distrain_nb.backends.price_lookup import LOOKUP
from distrain_nb.layout import Layout
from distrain_nb.worker.files.status import State, Status


def with_price(cost: RunCost) -> RunCost:
    """Return it with its price, if that has come by now; else it is asked for."""
    if cost.hourly is not None:
        return cost
    price = LOOKUP.price(Layout.from_line(cost.layout), cost.gpus)
    return cost.at(price) if price else cost


class CostWatch:
    """What the carrier of a run does about its cost: it has the price asked for, keeps in the run's
    folder what is known, and says when `--max-cost` is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cost = RunCost.read(folder)

    def look(self, status: Status, billed: float | None) -> str:
        """Return why the run is to be stopped now; empty if it isn't. `billed` are the seconds that
        the service says it bills, None where it doesn't."""
        before = cost = self._cost
        if cost is None:
            return ""
        cost = replace(with_price(cost), billed=billed)
        if not cost.stopped:
            cost = replace(cost, stopped=cost.reaches(cost.so_far(status, time.time())))
        if cost != before:
            cost.write(self._folder)
            self._cost = cost
        return cost.stopped

    def ended(self, state: State, error: str) -> tuple[State, str]:
        """Return how a run has ended: one that was stopped for its cost has failed."""
        if state is State.CANCELLED and self._cost and self._cost.stopped:
            return State.FAILED, self._cost.stopped
        return state, error
