"""Which ranks take longer than the others, at which steps, and by what: the numbers of a heat map.

A step's own time is what isn't the exchange, which a rank that comes early spends waiting. So a
slow rank shows where exchange makes all steps equally long, and where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from distrain_nb.worker.metrics.step_times import EXCHANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from distrain_nb.run.metrics.rank_times import RankTimes

    Numbers = NDArray[np.float64]

LATE_S, LATE_SHARE = 0.005, 0.1  # less of a step says nothing
MOST_COMPARED = 64  # ranks
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 64, 200, 1_500
ALL = -1  # the row of all ranks together, above those of ranks


class SlowCell(NamedTuple):
    """Some steps of a rank that take longer: by how many seconds a step, which kind most of all,
    and which share of a step that is. In the row `ALL`, longer than other steps of the run."""

    row: int
    column: int
    rank: int
    kind: str
    seconds: float
    share: float


@dataclass(frozen=True)
class SlowRanks:
    """Rows of ranks that follow each other, a rank each where there are few; columns of steps.

    `edges` are the steps between columns, `ended` the times of day at which columns end. `step_s`
    are the seconds of a step there, in the middle of the ranks.
    """

    rows: Sequence[Sequence[int]]
    edges: Numbers
    ended: Numbers
    step_s: Numbers
    cells: tuple[SlowCell, ...]


def slow_ranks(ranks: Mapping[int, RankTimes]) -> SlowRanks | None:
    """Return the slow cells of these ranks; None before the first window of steps."""
    timed = {rank: times for rank, times in ranks.items() if len(times.ends)}
    columns = min(MOST_COLUMNS, max((len(times.ends) for times in timed.values()), default=0))
    # Coarser where most cells are slow: a page gets no more of them than it can show.
    while columns:
        table = _Table(timed, columns)
        if columns == 1 or len(table.slow.cells) <= MOST_CELLS:
            return table.slow
        columns //= 2
    return None


class _Table:
    """Mean seconds of a step by kind, for each rank and column."""

    def __init__(self, ranks: Mapping[int, RankTimes], columns: int) -> None:
        self._ranks = list(ranks)
        first = min(times.ends[0] - times.counts[0] for times in ranks.values())
        last = max(times.ends[-1] for times in ranks.values())
        self._edges = np.linspace(first, last, columns + 1)
        longest = max(ranks.values(), key=lambda times: times.ends[-1])
        self._ended = np.interp(self._edges[1:], longest.ends, longest.ended)
        kinds = dict.fromkeys(kind for times in ranks.values() for kind in times.seconds)
        parts = [_resampled(times, tuple(kinds), self._edges) for times in ranks.values()]
        self._seconds = dict(zip(kinds, np.stack(parts, axis=1), strict=True))
        own_seconds = {kind: values for kind, values in self._seconds.items() if kind != EXCHANGE}
        self._own_seconds = own_seconds or self._seconds

    @cached_property
    def slow(self) -> SlowRanks:
        step_s = _middle(np.sum(list(self._seconds.values()), axis=0))
        cells = (*self._of_all(step_s), *self._of_ranks(step_s))
        return SlowRanks(self._rows, self._edges, self._ended, step_s, cells)

    @cached_property
    def _rows(self) -> list[list[int]]:
        size = 1 << max(0, math.ceil(math.log2(len(self._ranks) / MOST_ROWS)))
        return [self._ranks[at : at + size] for at in range(0, len(self._ranks), size)]

    def _of_ranks(self, step_s: Numbers) -> list[SlowCell]:
        """Return the slow cells, each by the slowest rank of its row."""
        more = {kind: values - _middle(values) for kind, values in self._own_seconds.items()}
        own_s = np.sum(list(self._own_seconds.values()), axis=0)
        longer = np.nan_to_num(own_s - _middle(own_s), nan=-np.inf)
        kinds, size = list(more), len(self._rows[0])
        causes = np.argmax(np.nan_to_num(np.stack(list(more.values()))), axis=0)
        cells = []
        for row, ranks in enumerate(self._rows):
            slowest = row * size + np.argmax(longer[row * size : row * size + len(ranks)], axis=0)
            for column in _slow(longer[slowest, np.arange(len(slowest))], step_s):
                place = slowest[column], column
                seconds = float(longer[place])
                cells.append(
                    SlowCell(
                        row, int(column), self._ranks[slowest[column]], kinds[causes[place]],
                        seconds, seconds / float(step_s[column]),
                    )
                )  # fmt: skip
        return cells

    def _of_all(self, step_s: Numbers) -> list[SlowCell]:
        """Return the columns in which a step takes longer than usual, in the middle of the
        ranks."""
        if not np.isfinite(step_s).any():
            return []
        by_kind = {kind: _middle(values) for kind, values in self._seconds.items()}
        more = {kind: values - np.nanmedian(values) for kind, values in by_kind.items()}
        usual = float(np.nanmedian(step_s))
        longer = step_s - usual
        return [
            SlowCell(
                ALL, int(column), ALL, max(more, key=lambda kind: more[kind][column]),
                float(longer[column]), float(longer[column]) / usual,
            )
            for column in _slow(np.nan_to_num(longer, nan=-np.inf), np.full(len(step_s), usual))
        ]  # fmt: skip


def _slow(longer: Numbers, step_s: Numbers) -> NDArray[np.int64]:
    """Return the columns in which so many seconds more matter."""
    return np.flatnonzero(longer >= np.maximum(LATE_S, LATE_SHARE * np.nan_to_num(step_s)))


def _resampled(times: RankTimes, kinds: Sequence[str], edges: Numbers) -> Numbers:
    """Return the mean seconds of a step between the edges, a row for each kind: NaN where there is
    no step."""
    seconds = np.zeros((len(kinds) + 1, len(times.ends)))
    for row, kind in enumerate(kinds):
        seconds[row] = times.seconds.get(kind, 0.0) * times.counts
    seconds[-1] = times.counts
    sums = np.concatenate([np.zeros((len(seconds), 1)), np.cumsum(seconds, axis=1)], axis=1)
    places = np.concatenate([times.ends[:1] - times.counts[:1], times.ends])
    *values, steps = (np.diff(np.interp(edges, places, of)) for of in sums)
    return np.where(steps > 0, np.stack(values) / np.maximum(steps, 1e-9), np.nan)


def _middle(values: Numbers) -> Numbers:
    """Return the median of each column, of some ranks where there are many; NaN where there is
    nothing."""
    ordered = np.sort(values[:: math.ceil(len(values) / MOST_COMPARED)], axis=0)  # NaN are last
    counts = np.isfinite(ordered).sum(axis=0)
    middle: Numbers = ordered[np.maximum(counts - 1, 0) // 2, np.arange(values.shape[1])]
    return middle
