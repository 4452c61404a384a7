"""The loop that runs a study's trials: it suggests, starts, stops and counts them.

A place's driver says how a trial starts there, how it is doing, and how it is stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from distrain_nb.tuning.engine import Ending, Outcome, SearchEngine
from distrain_nb.tuning.reports import Row, curve
from distrain_nb.tuning.spec import StudySpec, Value
from distrain_nb.tuning.stopping import reason_to_stop

if TYPE_CHECKING:
    from distrain_nb.tuning.stopping import Curve

FAILED_AT_FIRST = 3  # trials, after which a study ends of which none has succeeded
COUNTED: tuple[Ending, ...] = ("succeeded", "stopped")  # endings of trials whose values count


class LoopedTrial(Protocol):
    """What the loop knows of a place's trial; `begin` is in seconds since the epoch."""

    @property
    def number(self) -> int: ...
    @property
    def begin(self) -> float: ...


T = TypeVar("T", bound=LoopedTrial)


class TrialLoop(ABC, Generic[T]):
    """The trials of one study at one place, by number from 1; `endings` of those that have ended.

    `engine` may know `earlier` trials of other studies, which count there before these. `ends` is
    True once the study is to end before it has all its trials.
    """

    def __init__(self, spec: StudySpec, engine: SearchEngine, earlier: int = 0) -> None:
        self.spec = spec
        self.trials: dict[int, T] = {}
        self.endings: dict[int, Ending] = {}
        self.ends = False
        self._engine = engine
        self._earlier = earlier
        self._curves: dict[int, Curve] = {}
        self._exhausted = False

    @abstractmethod
    def begin(self, number: int, values: Mapping[str, Value]) -> None:
        """Start a trial with these values, and put it into `trials`."""

    @abstractmethod
    def look(self, trial: T) -> bool:
        """Take in how a trial is doing, and `conclude` it if it has ended.

        Returns whether it has reported something by which it may be stopped early.
        """

    @abstractmethod
    def stop(self, trial: T, why: str) -> None:
        """Ask a trial to stop; `why` is empty if the whole study ends. May be called again."""

    @abstractmethod
    def ending(self, trial: T) -> Ending:
        """Return how a trial has ended."""

    @abstractmethod
    def rows(self, trial: T) -> Sequence[Row]:
        """Return what a trial has reported of the first goal so far."""

    @abstractmethod
    def values(self, trial: T) -> tuple[float, ...]:
        """Return the final value of each goal."""

    @abstractmethod
    def decide(self) -> bool:
        """Return whether the study is to end before it has all its trials; asked until it is."""

    @abstractmethod
    def rest(self) -> bool:
        """Wait until a trial may have news. Return False to leave the trials to others."""

    def requested(self) -> int:
        """Return how many trials there are to be in all, as of now."""
        return self.spec.trials

    def run_trials(self) -> bool:
        """Run trials until the requested number has ended, or the study ends before.

        Returns False if they were left to others.
        """
        while True:
            for trial in self.active():
                self._look_after(trial)
            self._begin_more()
            if not self.active():
                return True
            if not self.rest():
                return False

    def active(self) -> list[T]:
        """Return the trials that have not ended."""
        return [trial for number, trial in self.trials.items() if number not in self.endings]

    def with_ending(self, *endings: Ending) -> list[T]:
        """Return the trials that have ended so."""
        return [t for number, t in self.trials.items() if self.endings.get(number) in endings]

    def all_failed_at_first(self) -> bool:
        """Return whether no trial but failed ones has ended, and these are enough to give up."""
        least = max(FAILED_AT_FIRST, self.spec.parallel)
        return len(self.with_ending("failed")) == len(self.endings) >= least

    def wants_more(self) -> bool:
        """Return whether another trial is to be started, now or later."""
        return not self.ends and not self._exhausted and len(self.trials) < self.requested()

    def conclude(self, trial: T) -> None:
        """Count a trial that has ended."""
        outcome = self.outcome(trial)
        self.endings[trial.number] = outcome.ending
        self._engine.tell(self._earlier + trial.number, outcome)

    def outcome(self, trial: T) -> Outcome:
        """Return a trial's outcome for the search engine."""
        ending = self.ending(trial)
        if ending not in COUNTED:
            return Outcome(ending)
        points = tuple((step, value) for step, _, value in self.rows(trial))
        return Outcome(ending, self.values(trial), points)

    def reason_to_stop(self, trial: T) -> str:
        """Return why a trial that goes on is to be stopped early; empty if it isn't."""
        if self.spec.stopping is None:
            return ""
        counted = self.with_ending(*COUNTED)
        for other in counted:
            if other.number not in self._curves:
                self._curves[other.number] = self._curve(other)
        curves = [self._curves[other.number] for other in counted]
        direction = self.spec.goals[0].direction
        return reason_to_stop(self.spec.stopping, direction, self._curve(trial), curves)

    def _curve(self, trial: T) -> Curve:
        by_time = getattr(self.spec.stopping, "use_elapsed_duration", False)
        return curve(self.rows(trial), trial.begin if by_time else None)

    def _look_after(self, trial: T) -> None:
        news = self.look(trial)
        if trial.number in self.endings:
            return
        trial = self.trials[trial.number]
        why = self.reason_to_stop(trial) if news and not self.ends else ""
        if why or self.ends:
            self.stop(trial, why)

    def _begin_more(self) -> None:
        """Start as many trials as may run at once. Decide before each, as one may fail at once."""
        while True:
            self.ends = self.ends or self.decide()
            if len(self.active()) >= self.spec.parallel or not self.wants_more():
                return
            values = self._engine.ask()
            if values is None:
                self._exhausted = True
                return
            self.begin(len(self.trials) + 1, values)
