"""What a study costs: the price of a trial's machines, for as long as its trials have them.

Each trial of a study elsewhere has machines of its own. Those of a study on this machine share it,
so only the time counts in which any of them runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from distrain_nb.backends.cost import RunCost, seconds_on_machines
from distrain_nb.backends.cost_watch import with_price
from distrain_nb.backends.plugins import find
from distrain_nb.backends.price import HOUR_S, Money
from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.layout import Layout
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.status import Status

if TYPE_CHECKING:
    from distrain_nb.study.summary import StudySummary
    from distrain_nb.study.trial import StudyTrial
    from distrain_nb.tuning.spec import StudySpec


class TimedTrial(Protocol):
    """What of a trial its cost depends on: `paid` are the seconds of its runs that have ended."""

    @property
    def begin(self) -> float: ...
    @property
    def end(self) -> float | None: ...
    @property
    def paid(self) -> float: ...


@dataclass(frozen=True)
class StudyCost:
    """What a study's folder says of its cost; `here` if its trials share this machine."""

    cost: RunCost
    here: bool

    @classmethod
    def read(cls, folder: Path, backend: str) -> StudyCost | None:
        """Return what the folder has; None where nobody has a price of its machines."""
        cost = RunCost.read(folder)
        with suppress(OptionError):
            return StudyCost(cost, find(backend).here) if cost else None
        return None

    def keep(self, folder: Path) -> StudyCost:
        """Have its price asked for, and kept in the folder once it has come. Raises OSError."""
        cost = with_price(self.cost)
        if cost != self.cost:
            cost.write(folder)
        return replace(self, cost=cost)

    def of_trial(self) -> RunCost | None:
        """Return what the run of a trial is to know of its cost."""
        return None if self.here else replace(self.cost, limit=0.0)

    def seconds(self, trials: Iterable[TimedTrial], running: Iterable[Path] = ()) -> float:
        """Return how long its trials have had machines; `running` are folders of their runs that
        haven't ended."""
        now = time.time()
        if self.here:
            return _covered((trial.begin, trial.end or now) for trial in trials)
        return sum(trial.paid for trial in trials) + sum(map(self.paid, running))

    def paid(self, run: Path) -> float:
        """Return how many seconds of machines a run has been charged so far: those that the service
        bills, where it says so. A run that was deleted has none."""
        try:
            status, recorded = Status.read(run), RunCost.read(run)
        except (OSError, fields.Damaged):
            return 0.0
        if recorded and recorded.billed is not None:
            return recorded.billed
        until = status.times.get(str(status.state)) if status.state.final else None
        return seconds_on_machines(status, until or time.time(), self.cost.paid_phases)

    def reaches(self, seconds: float) -> str:
        """Return why the study is to be stopped after so many seconds; empty if it isn't."""
        return self.cost.reaches(self.cost.price.during(seconds) if self.cost.price else None)

    def text(self, summary: StudySummary) -> str:
        """Write what the study has cost, and what it will have cost at its expected end."""
        trials, remaining = summary.trials, summary.seconds_left
        going = (trial for trial in trials if not trial.state.final)
        running = [folder for trial in going for folder in _folder_of(trial)]
        if remaining is not None and not self.here:
            ended = [trial.paid for trial in trials if trial.state.final]
            mean = sum(ended) / len(ended)
            charged = sum(min(mean, self.paid(folder)) for folder in running)
            # Of the trials that go on, one that is just being started has no run yet.
            remaining = mean * (max(summary.wanted, len(trials)) - len(ended)) - charged
        return self.cost.words(self.seconds(trials, running), remaining, ended=summary.final)


def costs_text(cost: RunCost, layout: Layout, spec: StudySpec, *, here: bool) -> str:
    """Return the line of `--dry-run` about the cost; `here` if the trials share this machine."""
    price = cost.price
    if price is None:
        return f"Cost: price not known: {cost.why}"
    most = "at most " if cost.ceiling else ""
    parts = [f"{most}{price.per_hour} per hour{'' if here else ' of a trial'}"]
    if not here and spec.parallel > 1:
        parts.append(f"{most}{price.during(HOUR_S * spec.parallel)} with {spec.parallel} at once")
    if not here and layout.timeout:
        limit = price.during(layout.timeout * spec.trials)
        parts.append(f"{most}{limit} for {spec.trials} trials that reach the time limit")
    if cost.limit:
        parts.append(f"stopped at {Money(cost.limit, cost.currency)}")
    return f"Cost, by {cost.source}: {'; '.join(filter(None, (*parts, cost.note)))}"


def _covered(stretches: Iterable[tuple[float, float]]) -> float:
    """Return how many seconds any of these stretches covers."""
    seconds, until = 0.0, 0.0
    for begin, end in sorted(stretches):
        seconds += max(0.0, end - max(begin, until))
        until = max(until, end)
    return seconds


def _folder_of(trial: StudyTrial) -> Iterator[Path]:
    with suppress(DistrainError):
        yield trial.run.folder
