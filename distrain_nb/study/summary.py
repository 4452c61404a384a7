"""The view of a study: pages, tables, texts and documents are made of this one value."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from distrain_nb import escapes
from distrain_nb.run.metrics import finite
from distrain_nb.run.summary import Overview, duration, plural, short_number, steps_of
from distrain_nb.study.cost import StudyCost
from distrain_nb.study.files import TrialState
from distrain_nb.tuning.spec import Goal, StudySpec, Value
from distrain_nb.types import Json
from distrain_nb.worker.files.status import State

if TYPE_CHECKING:
    from distrain_nb.study.study import Study
    from distrain_nb.study.trial import StudyTrial

# As page/src/protocol.d.ts names them; steps, progress and front are written by themselves.
_OF_PAGE = (
    *("id", "name", "state", "phase", "final", "where", "size", "begin", "end", "now", "note"),
    *(
        "error",
        "cost",
        "cost_note",
        "ended",
        "wanted",
        "adds_trials",
        "stops_trials",
        "left",
        "best",
        "names",
        "goals",
    ),
)
VALUED = (TrialState.SUCCEEDED, TrialState.STOPPED)  # their values count


@dataclass(frozen=True, kw_only=True)
class StudySummary(Overview):
    """A study with its trials, as of `now`, in seconds since the epoch.

    `steps` and `progress` are those of a service's tuning job; `adds_trials` and `stops_trials` say
    what can be asked of it.
    """

    noun = "study"

    spec: StudySpec
    wanted: int
    trials: tuple[StudyTrial, ...]
    front: tuple[StudyTrial, ...]
    now: float
    adds_trials: bool = True
    stops_trials: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(dict.fromkeys(parameter.name for parameter in self.spec.parameters))

    @property
    def goals(self) -> tuple[str, ...]:
        return tuple(goal.metric for goal in self.spec.goals)

    @cached_property
    def running(self) -> int:
        return sum(not trial.state.final for trial in self.trials)

    @property
    def ended(self) -> int:
        return len(self.trials) - self.running

    @property
    def where(self) -> str:
        """How far it is: `12 of 20 trials`."""
        return f"{self.ended} of {plural(self.wanted, 'trial')}"

    @property
    def size(self) -> str:
        """How much of it runs: `4 running`; empty where nothing does."""
        return f"{self.running} running" if self.running else ""

    @property
    def line(self) -> str:
        """State, progress and the best so far, in a line of text."""
        doing = self.doing(self.now)
        parts = (self.where, self.size, self.best, self.left, self.cost_text, doing)
        return f"{self.title}: {self.state_text}, {'; '.join(filter(None, parts))}"

    @property
    def best(self) -> str:
        """The best trial so far in words; empty before there is one."""
        if not self.front:
            return ""
        if len(self.goals) > 1:
            return f"{plural(len(self.front), 'trial')} on the Pareto front"
        best, goal = self.front[0], self.goals[0]
        value = short_number(best.goals[goal])
        return f"best {goal} {value} in trial {best.number} ({values_of(best)})"

    @property
    def ending(self) -> str:
        """Why it ended, how many trials it had, the best, and the cost, in a line each."""
        failed = sum(trial.state is TrialState.FAILED for trial in self.trials)
        trials = f"{self.where}{f', {failed} failed' if failed else ''}"
        cost = f"cost: {self.cost_text}" if self.cost else ""
        return "\n".join(filter(None, (self.cause, trials, self.best, cost)))

    @property
    def left(self) -> str:
        """How long it still takes, in words; empty where that can't be told."""
        seconds = self.seconds_left
        return "" if seconds is None else f"about {_roughly(seconds)} left"

    @property
    def seconds_left(self) -> float | None:
        """If trials go on as they went; None before one has ended, and when no more will."""
        ended = [trial.duration for trial in self.trials if trial.state.final]
        remaining = self.wanted - len(ended)
        if self.state != State.RUNNING or not ended or remaining <= 0:
            return None
        mean = sum(ended) / len(ended)
        begun = (min(mean, trial.duration) for trial in self.trials if not trial.state.final)
        return max(0.0, mean * remaining - sum(begun)) / min(self.spec.parallel, remaining)

    def as_json(self) -> dict[str, Json]:
        """Return what the page shows besides trials and charts, as JSON values."""
        return finite.without_nan(
            {
                **{name: getattr(self, name) for name in _OF_PAGE},
                "steps": [asdict(step) for step in self.steps],
                "progress": asdict(self.progress) if self.progress else None,
                "front": [trial.number for trial in self.front],
            }
        )


def summary_of(study: Study) -> StudySummary:
    """Return the study's present summary. Raises RunUnreadable."""
    status, trials = study.status, study.all_trials()
    now, final = time.time(), status.state.final
    end = status.times.get(str(status.state), now) if final else None
    summary = StudySummary(
        id=study.id,
        name=study.name,
        state=str(status.state),
        final=final,
        phase=status.phase,
        steps=steps_of(study.file.created, status, end) if study.on_service else (),
        begin=study.file.created,
        end=end,
        note=escapes.plain(status.note),
        error=escapes.plain(status.error),
        progress=None if final else status.progress,
        spec=study.spec,
        wanted=study.requested_trials,
        trials=trials,
        front=study.front_of(trials),
        now=now,
        adds_trials=study.adds_trials,
        stops_trials=study.stops_trials,
    )
    cost = StudyCost.read(study.folder, study.file.backend)
    return replace(summary, cost=cost.text(summary), cost_note=cost.cost.note) if cost else summary


def values_of(trial: StudyTrial) -> str:
    """`lr=0.01, width=32`."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in trial.params.items())


def value_text(value: Value) -> str:
    """Return a value of a parameter as pages have it."""
    return value if isinstance(value, str) else short_number(value)


def value_of(trial: StudyTrial, goal: str) -> float:
    """NaN where it has none."""
    return trial.goals.get(goal, math.nan)


def best_so_far(trials: Sequence[StudyTrial], goal: Goal) -> list[tuple[int, float]]:
    """Return (number of the trial, value) of all that were better than those before them; stopped
    ones count where none has succeeded."""
    sign = 1 if goal.direction == "min" else -1
    for state in VALUED:
        steps: list[tuple[int, float]] = []
        for trial in (trial for trial in trials if trial.state is state):
            value = value_of(trial, goal.metric)
            if math.isfinite(value) and (not steps or sign * value < sign * steps[-1][1]):
                steps.append((trial.number, value))
        if steps:
            return steps
    return []


def trial_ranks(trials: Sequence[StudyTrial], goal: Goal) -> dict[int, float]:
    """Rank trials from 0, the worst, to 1, the best, by number. Ranks are equally far apart, so
    that one very bad value leaves the others apart."""
    sign = -1 if goal.direction == "min" else 1
    values = ((t.goals.get(goal.metric, math.nan), t.number) for t in trials if t.state in VALUED)
    ordered = sorted((sign * value, number) for value, number in values if math.isfinite(value))
    return {number: n / max(1, len(ordered) - 1) for n, (_, number) in enumerate(ordered)}


def _roughly(seconds: float) -> str:
    """Write an estimate, which needs no seconds beside minutes."""
    if seconds < 60:
        return duration(10.0 * max(1, round(seconds / 10)))
    if seconds < 3 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"
