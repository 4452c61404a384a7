"""The price of machines, and amounts of money."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from distrain_nb.errors import DistrainError, OptionError

HOUR_S = 3600.0
HOURS_A_MONTH = 730  # what the clouds divide a price a month by
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]{3})")


class NoPrice(DistrainError):
    """A price is not known; the message says why."""


class Money(NamedTuple):
    """An amount in a currency, such as `USD`. Prints with the few digits of an estimate."""

    amount: float
    currency: str

    @classmethod
    def parse(cls, text: str) -> Money:
        """Read the text of `--max-cost`. Raises OptionError."""
        match = _AMOUNT.fullmatch(text.strip())
        if not match or not float(match[1]):
            raise OptionError(
                f"invalid --max-cost {text!r}: expected an amount and its currency, such as 50USD"
            )
        return cls(float(match[1]), match[2].upper())

    def __str__(self) -> str:
        size = abs(self.amount)
        if size and size < 1:
            digits = 1 - math.floor(math.log10(size))  # two that count
        else:
            digits = 2 if size < 10 else 1 if size < 100 else 0
        return f"{self.amount:,.{digits}f} {self.currency}"


@dataclass(frozen=True)
class Price:
    """The price of all machines of a layout for an hour.

    `source` is where it was found. With `ceiling`, the machines may cost less. `note` says what the
    price leaves out.
    """

    hourly: float
    currency: str
    source: str = ""
    ceiling: bool = False
    note: str = ""

    @property
    def per_hour(self) -> Money:
        return self.during(HOUR_S)

    def during(self, seconds: float) -> Money:
        """Return the price of so many seconds."""
        return Money(self.hourly * seconds / HOUR_S, self.currency)

    def seconds_until(self, limit: Money) -> float:
        """Return the seconds until a limit is reached. Raises NoPrice for another currency."""
        if limit.currency != self.currency:
            raise NoPrice(f"its machines have prices in {self.currency}, not in {limit.currency}")
        return limit.amount / self.hourly * HOUR_S if self.hourly else math.inf
