"""A trial of a study, as of the time of the question."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.errors import RunNotReady
from distrain_nb.run.metrics import finite
from distrain_nb.run.metrics.downsample import downsample
from distrain_nb.study.files import TrialFile, TrialState
from distrain_nb.study.launching import trial_run
from distrain_nb.study.run_curves import POINTS_OF_CURVE, RunCurves
from distrain_nb.tuning.engine import Outcome
from distrain_nb.tuning.spec import StudySpec, Value
from distrain_nb.types import Json

if TYPE_CHECKING:
    from distrain_nb.run import Run
    from distrain_nb.run.metrics.records import Points
    from distrain_nb.run.results import Results


class StudyTrial:
    """A trial: the values that it tries, the values that it has reached, and its run.

    `number` counts from 1. `params` are the values that it tries. `goals` are the values that it
    has reached so far, by metric.
    """

    def __init__(self, file: TrialFile, run_curves: RunCurves | None = None) -> None:
        """Describe the trial of a file. *run_curves* reads the metrics of its run."""
        self._file = file
        self.run_curves = run_curves
        self._curves: dict[int, dict[str, Points]] = {}  # by their number of points
        self._is_lasting = False
        self.number = file.number
        self.params: Mapping[str, Value] = file.parameters
        self.goals: Mapping[str, float] = file.goals
        self.state = file.state
        self._scores: tuple[StudySpec | None, tuple[float, ...]] = None, ()

    @property
    def why(self) -> str:
        """The reason of its failure or early stop."""
        return escapes.plain(self._file.why)

    @property
    def steps(self) -> int:
        """The number of steps for which it has reported the first goal."""
        return self._file.steps

    @property
    def duration(self) -> float:
        """Seconds from its request to its end; 0 if the clock was set back."""
        return max(0.0, (self._file.end or time.time()) - self._file.begin)

    @property
    def begin(self) -> float:
        """The time of its request, in seconds since the epoch."""
        return self._file.begin

    @property
    def end(self) -> float | None:
        """When it ended; None before."""
        return self._file.end or None

    @property
    def paid(self) -> float:
        """Seconds for which its ended runs had machines of their own."""
        return self._file.paid

    @property
    def run_id(self) -> int | None:
        """The number of its run; None before it has one."""
        return self._file.run

    @property
    def run(self) -> Run:
        """Its run, with its log, metrics and results. Raises RunNotReady, RunNotFound."""
        handle = trial_run(self._file)
        if handle is None:
            raise RunNotReady(f"trial {self.number} has no run yet")
        return handle

    @property
    def results(self) -> Results:
        """The results of its run. Raises what `Run.results` does."""
        return self.run.results

    def curves(self, goals: Sequence[str], count: int) -> Mapping[str, Points]:
        """Return the reported values of these goals by step, thinned to *count* points.

        There are none without a run. The curves of a trial that goes on are those of the first
        call.
        """
        if self.run_curves is None:
            return {}
        curves = self._curves
        if not curves or not self._is_lasting:
            self._is_lasting = not self.state.final or self.run_curves.is_over
            self._curves = curves = {POINTS_OF_CURVE: self.run_curves.read(goals)}
        if count not in curves:
            longest = curves[POINTS_OF_CURVE]
            curves[count] = {goal: downsample(curve, count) for goal, curve in longest.items()}
        return curves[count]

    def scores(self, spec: StudySpec) -> tuple[float, ...]:
        """Return its values, with signs so that larger is better; NaN for a missing value."""
        known_spec, values_of_goals = self._scores
        if known_spec is not spec:
            values = ((goal, self.goals.get(goal.metric, math.nan)) for goal in spec.goals)
            values_of_goals = tuple(
                value if goal.direction == "max" else -value for goal, value in values
            )
            self._scores = spec, values_of_goals
        return values_of_goals

    def outcome(self, goals: Sequence[str]) -> Outcome:
        """Return the outcome of the trial as a search engine sees it, by its values alone."""
        if not self.state.final:
            return Outcome("running")
        values = tuple(self.goals[goal] for goal in goals if goal in self.goals)
        if len(values) == len(goals) and self.state is TrialState.SUCCEEDED:
            return Outcome("succeeded", values)
        if len(values) == len(goals) and self.state is TrialState.STOPPED:
            return Outcome("stopped", values, ((self.steps, values[0]),))
        return Outcome("failed")

    @cached_property
    def as_json(self) -> dict[str, Json]:
        """A row of the page's table."""
        return finite.without_nan(
            {
                "id": self.number,
                "state": str(self.state),
                "final": self.state.final,
                "parameters": dict(self.params),
                "goals": dict(self.goals),
                "steps": self.steps,
                "begin": self.begin,
                "end": self.end,
                "run": self.run_id,
                "why": self.why,
            }
        )

    @cached_property
    def digest(self) -> bytes:
        """A hash that changes with every change of the trial."""
        return hashlib.sha256(finite.to_json(self.as_json).encode()).digest()[:12]

    def row(self, names: Iterable[str], goals: Iterable[str]) -> dict[str, object]:
        """Return the trial as a row of a table, with these parameters and goals."""
        return {
            "trial": self.number,
            "state": str(self.state),
            **{name: self.params.get(name) for name in names},
            **{goal: self.goals.get(goal, math.nan) for goal in goals},
            "steps": self.steps,
            "duration": self.duration,
            "run": self._file.run,
        }

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.params.items())
        goals = ", ".join(f"{name} {value:.4g}" for name, value in self.goals.items())
        return f"StudyTrial({self.number}, {self.state}, {values}{'; ' if goals else ''}{goals})"
