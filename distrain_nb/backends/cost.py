"""The cost of a run, as the run's folder keeps it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from distrain_nb.backends.price import Money, NoPrice, Price
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import COST_FILE
from distrain_nb.worker.files.status import State, Status

_COSTING = (State.RUNNING.value, State.STOPPING.value)


@dataclass(frozen=True)
class RunCost:
    """The cost of a run, as its folder has it.

    `layout` is the line of its layout. While `hourly` is None, the price is still to be asked for,
    and `why` says why it isn't known. `paid_phases` are those of its backend. `note` says what the
    price leaves out. `limit` is the amount of `--max-cost`, or 0. `stopped` is the reason if the
    run was stopped there. `billed` are the seconds that the service bills, if it says so.
    """

    layout: str = ""
    gpus: int = 0
    paid_phases: tuple[str, ...] = ()
    hourly: Optional[float] = None  # noqa: UP045  (`fields` reads it)
    currency: str = ""
    source: str = ""
    ceiling: bool = False
    note: str = ""
    why: str = ""
    limit: float = 0.0
    billed: Optional[float] = None  # noqa: UP045
    stopped: str = ""

    @classmethod
    def read(cls, folder: Path) -> RunCost | None:
        """Return the cost in a folder; None if the file is missing or damaged."""
        try:
            return fields.read(cls, folder / COST_FILE)
        except (OSError, fields.Damaged):
            return None

    def write(self, folder: Path) -> None:
        replace_file(folder / COST_FILE, fields.encode(self))

    @property
    def price(self) -> Price | None:
        """The price of the run's machines, if it is known."""
        if self.hourly is None:
            return None
        return Price(self.hourly, self.currency, self.source, self.ceiling, self.note)

    def at(self, price: Price | NoPrice) -> RunCost:
        """Return the cost with a price, or with the reason why there is none."""
        if isinstance(price, NoPrice):
            return replace(self, why=str(price))
        asked = replace(self, hourly=price.hourly, currency=price.currency, why="")
        return replace(asked, source=price.source, ceiling=price.ceiling, note=price.note)

    def so_far(self, status: Status, now: float) -> Money | None:
        """Return the cost by now; None if no price is known."""
        if self.price is None:
            return None
        seconds = self._seconds(status, now) if self.billed is None else self.billed
        return self.price.during(seconds)

    def reaches(self, spent: Money | None) -> str:
        """Return the reason to stop a run that has cost *spent*; empty if there is none."""
        if not self.limit or spent is None or spent.amount < self.limit:
            return ""
        return cost_limit_reason(Money(self.limit, self.currency), ceiling=self.is_ceiling)

    @property
    def is_ceiling(self) -> bool:
        """Whether the sum may be less. A service that bills fewer seconds says so."""
        return self.ceiling and self.billed is None

    def _seconds(self, status: Status, now: float) -> float:
        return seconds_on_machines(status, now, self.paid_phases)

    def text(self, status: Status, now: float, end: float | None = None) -> str:
        """Return the cost in words.

        With *end*, an estimate in seconds since the epoch, it is `0.42 USD so far, about 3.10 USD
        at the end`. Without, it is `at least 0.42 USD`.
        """
        ended = status.state.final
        until = status.times.get(str(status.state), now) if ended else now
        seconds = self._seconds(status, until) if self.billed is None else self.billed
        return self.words(seconds, None if end is None else max(0.0, end - now), ended=ended)

    def words(self, seconds: float, remaining: float | None = None, *, ended: bool = False) -> str:
        """Return the cost of so many seconds in words, as `text` does.

        *remaining* are still expected.
        """
        if self.price is None:
            return f"price not known: {self.why}" if self.why else ""
        spent = self.price.during(seconds)
        most = "at most " if self.is_ceiling else ""
        if ended:
            return f"{most}{spent}"
        if remaining is None:
            return f"{most or 'at least '}{spent}{' so far' if most else ''}"
        return f"{most}{spent} so far, about {self.price.during(seconds + remaining)} at the end"


def cost_limit_reason(limit: Money, *, ceiling: bool = False) -> str:
    """Return the reason of a stop by `--max-cost`."""
    most = " at most, as managed spot machines have no list price" if ceiling else ""
    return f"it was stopped by --max-cost: it has cost {limit}{most}"


def seconds_on_machines(status: Status, now: float, paid_phases: tuple[str, ...] = ()) -> float:
    """Return how long a run has had its machines.

    It had them while it ran, and in the *paid_phases*. A run in a queue costs nothing.
    """
    trail = status.trail
    ends = [*(stretch.begin for stretch in trail[1:]), now]
    ran, seconds = False, 0.0
    for stretch, end in zip(trail, ends, strict=False):
        is_prepared = bool(paid_phases) and stretch.phase.startswith(paid_phases)
        ran = ran or is_prepared or stretch.state == State.RUNNING
        if is_prepared or (ran and stretch.state in _COSTING):
            seconds += max(0.0, end - stretch.begin)
    return seconds
