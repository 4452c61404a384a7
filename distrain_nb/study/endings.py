"""How a trial has ended: from the end of its run, and what it has reported."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.study.files import TrialState
from distrain_nb.worker.files.failure import was_killed
from distrain_nb.worker.files.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.study.curves import TrialMetrics
    from distrain_nb.study.files import TrialFile
    from distrain_nb.tuning.spec import StudySpec
    from distrain_nb.worker.files.status import Status


@dataclass(frozen=True)
class Ending:
    """A trial's last state, why, and its values by metric; `again` says that its run came to an
    end that says nothing of them, so that it may be tried once more."""

    state: TrialState
    why: str = ""
    goals: Mapping[str, float] = field(default_factory=dict)
    again: bool = False


def final_values(metrics: TrialMetrics, spec: StudySpec) -> dict[str, float]:
    """Return the value of each goal that was reported: the last, or the best where that counts."""
    found = {}
    for goal in spec.goals:
        values = [row[2] for row in metrics.rows(goal.metric)]
        finite = [value for value in values if math.isfinite(value)]
        if finite and spec.measurement == "best":
            found[goal.metric] = min(finite) if goal.direction == "min" else max(finite)
        elif values:
            found[goal.metric] = values[-1]
    return found


def ending_of(trial: TrialFile, status: Status, metrics: TrialMetrics, spec: StudySpec) -> Ending:
    """What the end of a trial's run makes of the trial."""
    values = final_values(metrics, spec)
    if status.state is State.SUCCEEDED:
        why = _unusable(values, metrics, spec)
        return Ending(TrialState.FAILED if why else TrialState.SUCCEEDED, why, values)
    if status.state is State.FAILED and not status.lost and not was_killed(status.error):
        return Ending(TrialState.FAILED, status.error.strip().partition("\n")[0], values)
    if trial.state is TrialState.STOPPING:
        return _stopped(trial, values, spec)
    if status.state is State.FAILED:
        return Ending(TrialState.FAILED, status.error, values, again=True)
    why = status.error or "its run was cancelled"
    return Ending(TrialState.CANCELLED, why, values)


def _stopped(trial: TrialFile, values: Mapping[str, float], spec: StudySpec) -> Ending:
    """Return one that has said nothing of its goals counts for nothing."""
    complete = all(math.isfinite(values.get(goal.metric, math.nan)) for goal in spec.goals)
    state = TrialState.STOPPED if complete else TrialState.CANCELLED
    return Ending(state, trial.why, values)


def _unusable(values: Mapping[str, float], metrics: TrialMetrics, spec: StudySpec) -> str:
    """Return why the values of a trial that came to its end are of no use; empty if they are."""
    for goal in spec.goals:
        if goal.metric not in values:
            names = ", ".join(metrics.names)
            said = f"it reported {names}" if names else "it reported no metric at all"
            return (
                f"it never reported {goal.metric}, the goal: {said}; report it with "
                "log_metrics, an event file, or cloudml-hypertune"
            )
        if not math.isfinite(values[goal.metric]):
            return f"its {goal.metric} ended as {values[goal.metric]}"
    return ""
