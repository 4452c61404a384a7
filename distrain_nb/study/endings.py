"""The end of a trial: its state, and the values of its goals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distrain_nb.run.metrics.downsample import downsample
from distrain_nb.run.metrics.events import EventFolder
from distrain_nb.run.metrics.records import POINT
from distrain_nb.study.files import TrialState
from distrain_nb.tuning.reports import HypertuneReports, Row, by_step, final_values
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.worker.files.folder import EVENTS_FOLDER, HYPERTUNE_FILE
from distrain_nb.worker.files.status import State, Status

if TYPE_CHECKING:
    from distrain_nb.run.metrics.records import Points
    from distrain_nb.study.files import TrialFile

_OF_THE_RUN = ("", "rank-0")  # series that speak for the whole run


class TrialMetrics:
    """The metrics of a run in its folder. Each `read` adds the new values."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._events = EventFolder(folder / EVENTS_FOLDER)
        self._reports: dict[Path, HypertuneReports] = {}

    def read(self) -> bool:
        """Read new values. Return whether there were any."""
        news = bool(self._events.read())
        for path in sorted(self._folder.glob(HYPERTUNE_FILE.format("*"))):
            with suppress(OSError):
                reports = self._reports.setdefault(path, HypertuneReports())
                news = reports.take(path.read_bytes()) or news
        return news

    def rows(self, metric: str) -> list[Row]:
        """Return the values of a metric so far, by step. The last value of a step counts."""
        rows = self._of_events(metric).tolist()
        if not rows:
            reports = (report.rows(metric) for report in self._reports.values())
            rows = next(filter(None, reports), [])
        return by_step(rows)

    def curve(self, metric: str, count: int) -> Points:
        """Return the values of a metric as `rows` does, thinned to *count* points."""
        points = self._of_events(metric)
        if not len(points):
            points = np.array(self.rows(metric), POINT)
        points = points[np.argsort(points["step"], kind="stable")]
        is_last = np.append(np.diff(points["step"]) != 0, True)[: len(points)]
        return downsample(points[is_last], count)

    def values(self, metric: str) -> list[float]:
        """Return a metric's values so far, in the order of their steps."""
        return [value for *_, value in self.rows(metric)]

    @property
    def names(self) -> list[str]:
        """The metrics that were reported."""
        names = [key.tag for key in self._events.keys]
        names += [name for report in self._reports.values() for name in report.names]
        return list(dict.fromkeys(names))

    def _of_events(self, metric: str) -> Points:
        keys = [key for key in self._events.keys if metric in (key.tag, f"{key.series}/{key.tag}")]
        if not keys:
            return np.empty(0, POINT)
        return self._events.points(min(keys, key=lambda key: key.series not in _OF_THE_RUN))


@dataclass(frozen=True)
class TrialEnd:
    """A trial's last state, the reason, and its values by metric.

    `again` says that the run's end says nothing about the values, so the trial may be tried again.
    """

    state: TrialState
    why: str = ""
    goals: Mapping[str, float] = field(default_factory=dict)
    again: bool = False


def trial_end(trial: TrialFile, status: Status, metrics: TrialMetrics, spec: StudySpec) -> TrialEnd:
    """Return the end of a trial, from the end of its run."""
    values = final_values(spec, metrics.values)
    if status.state is State.SUCCEEDED:
        why = _unusable(values, metrics, spec)
        return TrialEnd(TrialState.FAILED if why else TrialState.SUCCEEDED, why, values)
    if status.state is State.FAILED and not status.says_nothing_of_the_program:
        return TrialEnd(TrialState.FAILED, status.error.strip().partition("\n")[0], values)
    if trial.state is TrialState.STOPPING:
        return _stopped(trial, values, spec)
    if status.state is State.FAILED:
        return TrialEnd(TrialState.FAILED, status.error, values, again=True)
    why = status.error or "its run was cancelled"
    return TrialEnd(TrialState.CANCELLED, why, values)


def _stopped(trial: TrialFile, values: Mapping[str, float], spec: StudySpec) -> TrialEnd:
    """Return the end of a stopped trial. It counts if it has reported all goals."""
    complete = all(math.isfinite(values.get(goal.metric, math.nan)) for goal in spec.goals)
    state = TrialState.STOPPED if complete else TrialState.CANCELLED
    return TrialEnd(state, trial.why, values)


def _unusable(values: Mapping[str, float], metrics: TrialMetrics, spec: StudySpec) -> str:
    """Return why the values of a successful run can't be used; empty if they can."""
    for goal in spec.goals:
        if goal.metric not in values:
            names = ", ".join(metrics.names)
            reason = f"it reported {names}" if names else "it reported no metric at all"
            return (
                f"it never reported {goal.metric}, the goal: {reason}; report it with "
                "log_metrics, an event file, or cloudml-hypertune"
            )
        if not math.isfinite(values[goal.metric]):
            return f"its {goal.metric} ended as {values[goal.metric]}"
    return ""
