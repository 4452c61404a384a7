"""The step times of a run's ranks as numbers: means, shares, and which ranks are late.

Ranks that exchange gradients have equal steps, whichever of them is slow. The exchange shows the
slow one. It ends for all ranks at once, so the last to arrive waits the least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.slow_ranks import (
    LATE_S,
    LATE_SHARE,
    MOST_COMPARED,
    SlowRanks,
    slow_ranks,
)
from distrain_nb.worker.metrics.step_times import EXCHANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FEWEST_STEPS = 10  # fewer steps say little: the first ones of a program differ from the others


@dataclass(frozen=True)
class RankTimes:
    """The step times of one rank, a row for each window, without the first step.

    `ends` has the last step of each window, `counts` the number of its steps. `seconds` has the
    mean seconds of a step by kind. `ended` says when each window was written. `workers` counts the
    processes of PyTorch's loader; it is -1 if there was no such loader.
    """

    ends: Numbers
    counts: Numbers
    seconds: Mapping[str, Numbers]
    ended: Numbers
    workers: int
    gradient_bytes: int

    @property
    def steps(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean seconds of a step by kind."""
        return {kind: self.mean(kind) for kind in self.seconds}

    def mean(self, kind: str) -> float:
        """Return the mean seconds of a kind in a step."""
        values = self.seconds.get(kind)
        return 0.0 if values is None else float((values * self.counts).sum() / self.counts.sum())

    @property
    def exchange(self) -> Numbers:
        """The seconds of the exchange in each window."""
        return self.seconds.get(EXCHANGE, np.zeros(len(self.ends)))

    def median(self, kind: str, since: int = 0) -> float:
        """Return the median seconds of a kind from a window on."""
        values = self.seconds.get(kind)
        return 0.0 if values is None else float(np.median(values[since:]))

    @cached_property
    def step_s(self) -> float:
        return sum(self.means.values())


@dataclass(frozen=True)
class StepTimes:
    """The step times of the ranks of a run, by rank."""

    ranks: Mapping[int, RankTimes]

    @cached_property
    def step_s(self) -> float:
        """Mean seconds of a step, over all ranks; 0 before the first."""
        return sum(r.step_s for r in self.ranks.values()) / max(1, len(self.ranks))

    @property
    def own_s(self) -> float:
        """Mean seconds of a step without the exchange."""
        return self.step_s - self.mean(EXCHANGE)

    @property
    def gradient_bytes(self) -> int:
        return max((r.gradient_bytes for r in self.ranks.values()), default=0)

    def mean(self, kind: str) -> float:
        """Return the mean seconds of a kind in a step, over all ranks."""
        total = sum(r.means.get(kind, 0.0) for r in self.ranks.values())
        return total / max(1, len(self.ranks))

    def share(self, kind: str) -> float:
        """Return the share of a step that a kind takes, over all ranks."""
        return self.mean(kind) / self.step_s if self.step_s else 0.0

    @cached_property
    def late(self) -> dict[int, tuple[float, int]]:
        """The ranks that come late to the exchange: by how many seconds, and since which window."""
        if len(self.ranks) < 2 or not self.mean(EXCHANGE):
            return {}
        usual = _exchange_of_others(self.ranks)
        delays = {rank: _delays(times, usual[rank]) for rank, times in self.ranks.items()}
        least = max(LATE_S, LATE_SHARE * self.step_s)
        return {rank: delay for rank, delay in delays.items() if delay[0] >= least}

    @cached_property
    def slow(self) -> SlowRanks | None:
        """The ranks that take longer than the others, and in which steps."""
        return slow_ranks(self.ranks)


def _exchange_of_others(ranks: Mapping[int, RankTimes]) -> dict[int, Numbers]:
    """Return for each rank the median time of the others' exchange in its windows.

    Of many ranks, only MOST_COMPARED are compared: all pairs of a thousand would take seconds.
    """
    compared = list(ranks)[:: math.ceil(len(ranks) / MOST_COMPARED)]
    every = np.concatenate([times.ends for times in ranks.values()])
    rows = np.array([np.interp(every, ranks[n].ends, ranks[n].exchange) for n in compared])
    places = np.cumsum([len(times.ends) for times in ranks.values()])[:-1]
    usual = dict(zip(ranks, np.split(np.median(rows, axis=0), places), strict=True))
    parts = dict(zip(ranks, np.split(rows, places, axis=1), strict=True))
    for place, rank in enumerate(compared):
        usual[rank] = np.median(np.delete(parts[rank], place, axis=0), axis=0)
    return usual


def _delays(times: RankTimes, usual: Numbers) -> tuple[float, int]:
    """Return how many seconds later than the others a rank reaches the exchange, and since which
    window."""
    none = np.zeros(len(times.ends))
    delays = usual - times.exchange
    step = sum(times.seconds.values(), none)
    on_time = np.flatnonzero(delays < np.maximum(LATE_S, LATE_SHARE * step))
    window = int(on_time[-1]) + 1 if len(on_time) else 0
    if times.counts[window:].sum() < FEWEST_STEPS:
        return 0.0, 0
    return float(np.median(delays[window:])), window
