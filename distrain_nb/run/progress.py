"""How far a run is and when it ends, for its readers: an estimate that says how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from distrain_nb.worker.files.status import Progress, State, Status
from distrain_nb.worker.metrics import progress
from distrain_nb.worker.metrics.progress import KeptProgress

PAUSE = 3.0  # times the usual time of as many steps
SURE = 1.25  # how far apart two ends may be that are told as one
UNSURE = 4.0  # and how far apart they say nothing
SILENT = 4.0  # times the longest silence so far: then nobody knows
ALONE = 1.3  # what one interval alone may be off by, and what two or three may
FEW = 1.12
MANY = 4


class TimeLeft(NamedTuple):
    """Seconds until the end: the likely number, and what it lies between."""

    likely: float
    least: float
    most: float

    @property
    def text(self) -> str:
        """Say it: `about 4 min left`, `4 to 9 min left`; empty where the two say nothing."""
        if self.most > UNSURE * max(self.least, 1.0):
            return ""
        if self.most <= SURE * self.least or self.most < 10:
            return f"about {_rounded(self.likely)} left"
        unit, name = _unit(self.most)
        least, most = max(1, round(self.least / unit)), round(self.most / unit)
        return (
            f"about {_rounded(self.likely)} left"
            if least == most
            else f"{least} to {most} {name} left"
        )


def estimate(
    times: Sequence[float], dones: Sequence[float], total: float, now: float
) -> TimeLeft | None:
    """Return the seconds that are left at `now`; None where that can't be told.

    `times` are when `dones` were reached. The time of the first step doesn't count: programs
    compile in it. A pause that was there once may be there again or not; several count as what
    happens now and then.
    """
    if total <= 0 or len(times) < 2 or dones[-1] >= total:
        return None
    first = 1 if dones[0] == 0 else 0
    spans = [
        (b - a, after - before)
        for (a, b), (before, after) in zip(
            pairwise(times[first:]), pairwise(dones[first:]), strict=True
        )
        if after > before and b >= a
    ]
    silent = now - times[-1]
    longest = max(b - a for a, b in pairwise(times))
    if not spans or silent > max(SILENT * longest, 10.0):
        return None
    rates = _rates(spans)
    remaining = total - dones[-1]
    # Of what comes next, some has passed since the last report.
    passed = min(
        silent, rates[0] * (spans[-1][1] if len(spans) < MANY else median(n for _, n in spans))
    )
    likely, least, most = (max(0.0, remaining * rate - passed) for rate in rates)
    return TimeLeft(likely, least, most)


def _rates(spans: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return seconds of a step: the likely number, the least and the most."""
    usual = _weighted_median([(time / steps, steps) for time, steps in spans])
    pauses = [time - usual * steps for time, steps in spans if time > PAUSE * usual * steps]
    all_steps = sum(steps for _, steps in spans)
    with_pauses = sum(time for time, _ in spans) / all_steps
    steady = [(t, n) for t, n in spans if t <= PAUSE * usual * n]
    plain = _mean(steady) if steady else with_pauses
    likely = with_pauses if len(pauses) > 1 else math.sqrt(plain * with_pauses)
    # What was there once may come twice as often.
    rates = [plain, with_pauses + (with_pauses - plain if len(pauses) == 1 else 0.0)]
    if len(steady) >= 2 * MANY and plain:  # it may get faster or slower
        half = len(steady) // 2
        rates += [likely * _mean(steady[half:]) / plain]
    doubt = ALONE if len(spans) == 1 else FEW if len(spans) < MANY else 1.0
    return likely, min(rates) / doubt, max(rates) * doubt


def _mean(spans: Sequence[tuple[float, float]]) -> float:
    return sum(time for time, _ in spans) / sum(steps for _, steps in spans)


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    half, passed = sum(weight for _, weight in values) / 2, 0.0
    for value, weight in sorted(values):
        passed += weight
        if passed >= half:
            return value
    return 0.0


def _unit(seconds: float) -> tuple[float, str]:
    return (1.0, "s") if seconds < 120 else (60.0, "min") if seconds < 5400 else (3600.0, "h")


def _rounded(seconds: float) -> str:
    unit, name = _unit(seconds)
    number = seconds / unit
    return (
        f"{number:.1f} {name}"
        if unit == 3600 and number < 10
        else f"{max(1, round(number))} {name}"
    )


@dataclass(frozen=True)
class RunProgress(Progress):
    """Progress of a running run, in units of its own. Where `total` is 0 it isn't known; `left` is
    how long it takes yet, in words."""

    unit: str = "steps"
    left: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """Say it: `300 of 1,000 steps, about 4 min left`."""
        if self.unit == "%":
            count = f"{self.done} %"
        else:
            count = f"{self.done:,} of {self.total:,} {self.unit}" if self.total else self._open
        label = f"{self.phase}: " if self.phase else ""
        return label + ", ".join(filter(None, (count, self.left)))

    @property
    def _open(self) -> str:
        return f"{self.done:,} {self.unit} begun"


def progress_of(folder: Path, status: Status, now: float) -> Progress | None:
    """Return what takes long in that run now: a phase of its start, waiting for machines, or the
    training itself."""
    if status.progress or status.state.final:
        return None if status.state.final else status.progress
    if status.state is State.QUEUED:
        return Progress("waiting", since=status.times.get(str(State.QUEUED), 0.0))
    reading = _reading(folder, status)
    if reading is None:
        return None
    remaining = _time_left(reading, now)
    return RunProgress(
        reading.label, int(reading.done), int(reading.total), 0.0, reading.unit,
        remaining.text if remaining else "", reading.source,
    )  # fmt: skip


def expected_end(folder: Path, status: Status, now: float) -> float | None:
    """Return when the run will probably end, in seconds since the epoch; None where it isn't sure
    enough to be said."""
    reading = _reading(folder, status)
    remaining = _time_left(reading, now) if reading else None
    return now + remaining.likely if remaining and remaining.text else None


def _reading(folder: Path, status: Status) -> KeptProgress | None:
    reading = progress.read(folder) if status.state is State.RUNNING else None
    return reading if reading and reading.times else None


def _time_left(reading: KeptProgress, now: float) -> TimeLeft | None:
    """Return the time that is left, by our estimate, else as the program has said."""
    estimated = estimate(reading.times, reading.dones, reading.total, now)
    silent = now - reading.times[-1]
    if estimated or not reading.left or not 0 < reading.done < reading.total:
        return estimated
    seconds = reading.left - silent
    return TimeLeft(seconds, seconds, seconds) if seconds > 0 else None
