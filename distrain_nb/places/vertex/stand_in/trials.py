"""A trial of a tuning job: its custom job, and what its replicas report of the goals."""

from __future__ import annotations

import copy
import json
import math
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.replicas import METRICS_FILE, args_of
from distrain_nb.rehearsal.job_folder import JobFolder
from distrain_nb.tuning.engine import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from distrain_nb.tuning.spec import StudySpec, Value

States: Any = types.Trial.State
ENDED = (States.SUCCEEDED, States.INFEASIBLE)
_LONGEST_REPORT = 64 << 20
_LAST_TIME = 1e11  # which a timestamp of the service can still say
_NOT_METRICS = frozenset(["timestamp", "trial", "global_step", "checkpoint_path"])


@dataclass
class RunningTrial:
    """`job` is the name of its custom job, `folder` has a folder with the metric file of each
    replica. Times are in seconds since the epoch."""

    number: int
    values: Mapping[str, Value]
    folder: Path
    job: str = ""
    state: Any = States.REQUESTED
    reason: str = ""
    begin: float = field(default_factory=time.time)
    end: float = 0.0
    reports: tuple[tuple[int, float, str, float], ...] = ()

    def read(self) -> None:
        """Take in what has been reported: step, time, metric, value. The file of the first replica
        that has written one counts."""
        for replica in sorted(self.folder.iterdir()):
            reports = tuple(_reports(JobFolder(replica)))
            if reports:
                self.reports = reports
                return

    def curve(self, metric: str, *, by_time: bool) -> NDArray[np.float64]:
        """Return the trial's curve, of shape (n, 2): steps or seconds since its beginning, and
        values."""
        points = {
            (time - self.begin if by_time else step): value
            for step, time, name, value in self.reports
            if name == metric
        }
        return np.array(sorted(points.items()), dtype=np.float64).reshape(-1, 2)

    def final(self, spec: StudySpec) -> dict[str, float]:
        """Return the value of each goal that counts: the last, or the best."""
        values_of: dict[str, float] = {}
        for goal in spec.goals:
            values = [value for _, _, name, value in self.reports if name == goal.metric]
            finite = [value for value in values if math.isfinite(value)]
            if finite and spec.measurement == "best":
                values_of[goal.metric] = min(finite) if goal.direction == "min" else max(finite)
            elif values:
                values_of[goal.metric] = values[-1]
        return values_of

    def conclude(self, job: types.CustomJob, spec: StudySpec) -> None:
        """Set the trial's final state by the end of its job. One that was stopped early has its
        values."""
        self.read()
        self.end = time.time()
        final = self.final(spec)
        lacking = [g.metric for g in spec.goals if not math.isfinite(final.get(g.metric, math.nan))]
        failed = job.state == types.JobState.JOB_STATE_FAILED
        cancelled = job.state == types.JobState.JOB_STATE_CANCELLED
        if failed:
            self.reason = job.error.message
        elif cancelled and self.state != States.STOPPING:
            self.reason = "The trial was cancelled."
        elif lacking:
            self.reason = f"The trial ended without a value of the metric {lacking[0]}."
        self.state = States.INFEASIBLE if self.reason else States.SUCCEEDED

    def outcome(self, spec: StudySpec) -> Outcome:
        """Return the trial's outcome for the search engine."""
        if self.state != States.SUCCEEDED:
            return Outcome("failed" if self.state == States.INFEASIBLE else "running")
        metric = spec.goals[0].metric
        points = tuple((int(step), value) for step, value in self.curve(metric, by_time=False))
        return Outcome("succeeded", tuple(self.final(spec).values()), points)

    def message(self, name: str, spec: StudySpec) -> types.Trial:
        """Describe the trial as the service does; `name` is the study's."""
        trial = types.Trial(
            name=f"{name}/trials/{self.number}",
            id=str(self.number),
            state=self.state,
            parameters=[{"parameter_id": n, "value": v} for n, v in self.values.items()],
            infeasible_reason=self.reason,
            custom_job=self.job,
            measurements=self._measurements(spec),
            start_time=_time(self.begin),
        )
        final = self.final(spec)
        if self.end:
            trial.end_time = _time(self.end)
        if self.state == States.SUCCEEDED:
            trial.final_measurement = types.Measurement(
                step_count=max((step for step, *_ in self.reports), default=0),
                metrics=[{"metric_id": n, "value": v} for n, v in final.items()],
            )
        return trial

    def _measurements(self, spec: StudySpec) -> list[types.Measurement]:
        metrics = {goal.metric for goal in spec.goals}
        return [
            types.Measurement(
                step_count=step,
                elapsed_duration=timedelta(seconds=max(0.0, time - self.begin)),
                metrics=[{"metric_id": name, "value": value}],
            )
            for step, time, name, value in sorted(self.reports)
            if name in metrics
        ]


def job_of_trial(tuning_job: types.HyperparameterTuningJob, trial: RunningTrial) -> types.CustomJob:
    """Return the custom job of a trial: its values as arguments of each replica, and a folder of
    its own below the study's."""
    spec = copy.deepcopy(tuning_job.trial_job_spec)
    for pool in spec.worker_pool_specs:
        if pool.replica_count:
            args_of(pool).extend(f"--{name}={value}" for name, value in trial.values.items())
    base = spec.base_output_directory.output_uri_prefix
    if base:
        spec.base_output_directory.output_uri_prefix = f"{base.rstrip('/')}/{trial.number}"
    return types.CustomJob(display_name=f"{tuning_job.display_name}-{trial.number}", job_spec=spec)


def _reports(folder: JobFolder) -> Iterator[tuple[int, float, str, float]]:
    """Read the reports of `cloudml-hypertune`; a line that is half written is read later."""
    try:
        with folder.open(METRICS_FILE) as file:
            lines = file.read(_LONGEST_REPORT).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        try:
            report = json.loads(line)
            time, step = float(report["timestamp"]), int(report["global_step"])
            if not (0 <= time < _LAST_TIME and 0 <= step < 1 << 63):
                return
            for name in report.keys() - _NOT_METRICS:
                yield step, time, name, float(report[name])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return


def _time(seconds: float) -> Any:
    return datetime.fromtimestamp(seconds, timezone.utc)
