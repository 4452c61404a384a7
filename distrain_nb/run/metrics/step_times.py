"""Where the time of a run goes: its ranks' step times, read as charts, shares and findings.

Ranks that exchange gradients have equal steps, whichever of them is slow. The slow one is told by
the exchange, which ends for all at once: who comes last waits the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.traffic import size
from distrain_nb.run.metrics.events import EventFolder, Key, event_files, file_size
from distrain_nb.run.metrics.records import POINT, Points
from distrain_nb.run.metrics.slow_ranks import (
    LATE_S,
    LATE_SHARE,
    MOST_COMPARED,
    SlowRanks,
    slow_ranks,
)
from distrain_nb.worker.files.folder import EVENTS_FOLDER, STEP_TIMES_FOLDER
from distrain_nb.worker.metrics.step_times import (
    COMPUTE,
    DATA,
    EXCHANGE,
    FACTS,
    GRADIENT_BYTES,
    KINDS,
    LOADER_WORKERS,
    REST,
    SAVE,
    STEPS,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# Less says little: the first steps of a program are not like the others.
FEWEST_STEPS, SHORTEST_S = 10, 10.0
# Shares of a step from which on a finding names a kind.
DATA_SHARE, EXCHANGE_SHARE, SAVE_SHARE = 0.2, 0.25, 0.1
MOST_WORKERS = 32
MOST_IN_ORDER = 12  # ranks: of more, the charts of late ones come first, below a heat map
NAMES = {
    DATA: "waiting for data",
    COMPUTE: "computing",
    EXCHANGE: "exchanging",
    SAVE: "saving",
    REST: "the rest",
}


class StepTimesFolder(EventFolder):
    """Step times as charts: one for each rank, with the milliseconds of each kind as its lines.

    All lines of a rank have the same steps, so that they can be stacked.
    """

    stacked = True

    def __init__(self, run_folder: Path) -> None:
        super().__init__(run_folder / EVENTS_FOLDER / STEP_TIMES_FOLDER)
        # As of the last read, which a page asks about many times.
        self._shown: tuple[Key, ...] | None = None
        self._times: StepTimes | None = None

    def read(self) -> dict[Key, Points]:
        series = {key.series for key in super().read()}
        if not series:
            return {}
        self._shown = self._times = None
        return {key: self.points(key) for key in self.keys if _series_of(key) in series}

    @property
    def keys(self) -> tuple[Key, ...]:
        if self._shown is None:
            late = self.times().late if len(self.times().ranks) > MOST_IN_ORDER else {}

            def order(key: Key) -> tuple[bool, int]:
                rank = _rank_of(key.series)
                return rank not in late, rank

            keys = sorted(super().keys, key=order)
            shown = [key for key in keys if key.tag not in FACTS and self._is_shown(key)]
            titles = {key.series: f"ms a step, {key.series.replace('-', ' ')}" for key in shown}
            self._shown = tuple(Key(key.tag, titles[key.series]) for key in shown)
        return self._shown

    @property
    def slow(self) -> SlowRanks | None:
        times = self.times()
        return times.slow if len(times.ranks) > MOST_IN_ORDER else None

    def _is_shown(self, key: Key) -> bool:
        return key.tag in (DATA, COMPUTE) or bool(super().points(key)["value"].any())

    def points(self, key: Key) -> Points:
        series = _series_of(key)
        rows = super().points(Key(series, STEPS)).astype(POINT)
        rows["value"] = 1000 * self.column(series, key.series)
        return rows[1:] if len(rows) > 1 else rows  # the first step would dwarf all others

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._sentences(), *super().notes)

    def _sentences(self) -> list[str]:
        times = self.times()
        return [times.sentence, *(f.message for f in times.findings)] if times.ranks else []

    def column(self, series: str, tag: str) -> Numbers:
        """Return one number for each window of a rank: 0 where a window doesn't have it."""
        windows = super().points(Key(series, STEPS))["step"]
        values = np.zeros(len(windows))
        if Key(series, tag) in self._lines:
            points = super().points(Key(series, tag))
            places = np.searchsorted(windows, points["step"])
            within = places < len(windows)
            values[places[within]] = points["value"][within]
        return values

    def times(self) -> StepTimes:
        """Return the times of all ranks that there are so far."""
        if self._times is None:
            tags: dict[str, list[str]] = {}
            for key in super().keys:
                tags.setdefault(key.series, []).append(key.tag)
            ranks = {
                _rank_of(of): self._rank(of, all_) for of, all_ in tags.items() if STEPS in all_
            }
            self._times = StepTimes({n: ranks[n] for n in sorted(ranks) if ranks[n].steps})
        return self._times

    def _rank(self, series: str, all_tags: Iterable[str]) -> RankTimes:
        tags = [tag for tag in all_tags if tag not in FACTS]
        windows = super().points(Key(series, STEPS))
        ends = windows["step"].astype(np.float64)
        counts = self.column(series, STEPS)
        # The first window is the first step. A job that was restarted counts from 1 again.
        first = int(np.flatnonzero(np.diff(ends, prepend=np.inf) < 0)[-1]) + 1 if len(ends) else 0
        last = [self.column(series, tag)[-1:] for tag in (LOADER_WORKERS, GRADIENT_BYTES)]
        return RankTimes(
            ends[first:],
            counts[first:],
            {tag: self.column(series, tag)[first:] for tag in tags},
            windows["wall_time"][first:],
            *(int(value[0]) if len(value) else 0 for value in last),
        )


@dataclass(frozen=True)
class RankTimes:
    """The step times of one rank, a row for each window but the first step.

    `ends`: the last step of each window; `counts`: its steps; `seconds`: the mean seconds of a step
    by kind; `ended`: when each window was written; `workers`: processes of the loader, -1 where no
    loader of PyTorch was seen.
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
        """Return the median seconds of a kind in the windows from that one on."""
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
    def sentence(self) -> str:
        """The shares in one sentence: `a step takes 20 ms: 61 % waiting for data, …`."""
        named = [kind for r in self.ranks.values() for kind in r.means if kind not in KINDS]
        shares = {kind: self.share(kind) for kind in dict.fromkeys((*KINDS, *named))}
        parts = [
            f"{share:.0%}".replace("%", " %") + f" {NAMES.get(kind, kind)}"
            for kind, share in shares.items()
            if share >= 0.005
        ]
        return f"a step takes {_ms(self.step_s)}: {', '.join(parts)}"

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What costs much of a step, and what to write; none before ten steps and ten seconds."""
        steps = min((r.steps for r in self.ranks.values()), default=0)
        if steps < FEWEST_STEPS or steps * self.step_s < SHORTEST_S:
            return ()
        late = self._late()
        parts = [self._data(), late, self._exchange(late is not None), self._save()]
        return tuple(finding for finding in parts if finding)

    def _data(self) -> Finding | None:
        share, workers = self.share(DATA), max(r.workers for r in self.ranks.values())
        if share < DATA_SHARE:
            return None
        loader = f" ({workers} loader worker{'' if workers == 1 else 's'} a rank)"
        waits = f"{_percent(share)} of a step is waiting for data{loader if workers >= 0 else ''}"
        if workers < 0:
            return _warning("time.data", f"{waits}: read ahead, or read shards (%distrain shard)")
        # So many batches at once take as long as all else of a step.
        busy = self.step_s * workers if workers else self.mean(DATA)
        enough = math.ceil(busy / max(self.step_s - self.mean(DATA), 1e-9))
        count = min(MOST_WORKERS, max(workers + 1, enough))
        line = f"DataLoader(…, num_workers={count}, persistent_workers=True)"
        return _warning("time.data", f"{waits}: write {line}, or read shards (%distrain shard)")

    def _exchange(self, one_is_late: bool) -> Finding | None:
        # The last rank to come waits for the transfer alone.
        waits = [r.means.get(EXCHANGE, 0.0) for r in self.ranks.values()]
        seconds = min(waits) if one_is_late else self.mean(EXCHANGE)
        share = seconds / self.step_s
        if share < EXCHANGE_SHARE:
            return None
        count = self.gradient_bytes
        gradients = f" ({_ms(seconds)} for {size(count)} of gradients)" if count else ""
        return _warning(
            "time.exchange",
            f"the exchange takes {_percent(share)} of a step{gradients}: "
            "write larger batches, or accumulate gradients (with model.no_sync():), "
            "or compare places with %distrain advise",
        )

    def _save(self) -> Finding | None:
        share = self.share(SAVE)
        if share < SAVE_SHARE:
            return None
        saving = sum(r.means.get(SAVE, 0.0) > 0 for r in self.ranks.values())
        alone = ", and on rank 0 alone (if rank == 0:)" if saving > 1 else ""
        return _warning(
            "time.save",
            f"{_percent(share)} of a step is saving: save every so many steps{alone}",
        )

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
        """The ranks that take longer than the others, by steps."""
        return slow_ranks(self.ranks)

    def _late(self) -> Finding | None:
        """Return the finding about the rank that comes last to the exchange, if one does."""
        if not self.late:
            return None
        rank, (seconds, window) = max(self.late.items(), key=lambda item: item[1][0])
        times = self.ranks[rank]
        begins = int(times.ends[window] - times.counts[window]) + 1
        arrives = f"arrives {_ms(seconds)} after the others"
        since = f" since step {begins}" if window else ""
        why = self._why(rank, window)
        return _warning("time.slow-rank", f"rank {rank} {arrives}{since}: {why}")

    def _why(self, rank: int, window: int) -> str:
        """Say what a rank does longer than the others."""
        times, others = self.ranks[rank], [r for n, r in self.ranks.items() if n != rank]
        more = {
            kind: times.median(kind, window) - float(np.median([r.median(kind) for r in others]))
            for kind in times.seconds
            if kind != EXCHANGE
        }
        kind = max(more, key=lambda kind: more[kind])
        advice = {
            DATA: "look at where its data is",
            COMPUTE: "look at its CPU and GPU in Resources by rank",
            SAVE: "save less often",
        }
        todo = advice.get(kind, "do that less often, or on all ranks")
        return f"{NAMES.get(kind, kind)} takes it {_ms(more[kind])} longer; {todo}"


def _exchange_of_others(ranks: Mapping[int, RankTimes]) -> dict[int, Numbers]:
    """Return for each rank how long the exchange of others takes in its windows, in the middle: of
    MOST_COMPARED ranks where there are more, as all pairs of a thousand would take seconds."""
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
    """Return by how many seconds a rank comes after the others to the exchange, and the window
    since which it does."""
    none = np.zeros(len(times.ends))
    delays = usual - times.exchange
    step = sum(times.seconds.values(), none)
    on_time = np.flatnonzero(delays < np.maximum(LATE_S, LATE_SHARE * step))
    window = int(on_time[-1]) + 1 if len(on_time) else 0
    if times.counts[window:].sum() < FEWEST_STEPS:
        return 0.0, 0
    return float(np.median(delays[window:])), window


def step_times(run_folder: Path) -> StepTimes:
    """Return the step times of the run in this folder, as far as they are written."""
    folder = StepTimesFolder(run_folder)
    files = sorted(event_files(folder.path))
    return _read(run_folder, tuple((str(path), file_size(path)) for path in files))


@lru_cache(maxsize=64)
def _read(run_folder: Path, files: tuple[tuple[str, int], ...]) -> StepTimes:  # noqa: ARG001
    """Read again where a file has grown."""
    folder = StepTimesFolder(run_folder)
    folder.read()
    return folder.times()


def _warning(code: str, message: str) -> Finding:
    return Finding(code, Severity.WARNING, "", message)


def _ms(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _series_of(key: Key) -> str:
    return f"rank-{key.tag.rpartition(' ')[2]}"


def _rank_of(series: str) -> int:
    number = series.rpartition("-")[2]
    return int(number) if number.isdigit() else -1
