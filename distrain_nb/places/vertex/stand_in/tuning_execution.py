"""A tuning job on its way: its trials are custom jobs."""

from __future__ import annotations

import copy
import logging
import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.execution import CustomJobExecution
from distrain_nb.places.vertex.stand_in.job_resource import ENDED as JOB_ENDED
from distrain_nb.places.vertex.stand_in.job_resource import JobResource
from distrain_nb.places.vertex.stand_in.job_resource import States as JobStates
from distrain_nb.places.vertex.stand_in.jobs import JobService
from distrain_nb.places.vertex.stand_in.replicas import METRICS_FILE, TrialPlace, args_of
from distrain_nb.rehearsal.job_folder import JobFolder
from distrain_nb.rehearsal.tuning_thread import TuningThread
from distrain_nb.tuning.engine import Ending, SearchEngine
from distrain_nb.tuning.reports import HypertuneReports, Row, final_values
from distrain_nb.tuning.spec import StudySpec, Value

_log = logging.getLogger(__name__)

States: Any = types.Trial.State
_LONGEST_REPORT = 64 << 20


class MetricFiles:
    """The metric files of a trial's replicas, each in a folder of its own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.reports = HypertuneReports()
        self._folder = folder
        self._files: dict[str, HypertuneReports] = {}

    def read(self) -> None:
        """Take in what has been reported. The file of the first replica that has reports counts."""
        for replica in sorted(self._folder.iterdir()):
            reports = self._files.setdefault(replica.name, HypertuneReports())
            with suppress(OSError), JobFolder(replica).open(METRICS_FILE) as file:
                reports.take(file.read(_LONGEST_REPORT))
            if reports.names:
                self.reports = reports
                return


@dataclass
class RunningTrial:
    """A trial with these values, and its custom job. Times are in seconds since the epoch."""

    number: int
    values: Mapping[str, Value]
    execution: CustomJobExecution
    metrics: MetricFiles
    state: Any = States.ACTIVE
    reason: str = ""
    begin: float = field(default_factory=time.time)
    end: float = 0.0

    @property
    def reports(self) -> HypertuneReports:
        return self.metrics.reports

    def final(self, spec: StudySpec) -> dict[str, float]:
        """Return the value of each goal that counts: the last, or the best."""
        return final_values(spec, self.reports.values)

    def conclude(self, job: types.CustomJob, spec: StudySpec) -> None:
        """Set the trial's final state by the end of its job. One that was stopped early has its
        values."""
        self.metrics.read()
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

    def message(self, name: str, spec: StudySpec) -> types.Trial:
        """Describe the trial as the service does; `name` is the study's."""
        trial = types.Trial(
            name=f"{name}/trials/{self.number}",
            id=str(self.number),
            state=self.state,
            parameters=[{"parameter_id": n, "value": v} for n, v in self.values.items()],
            infeasible_reason=self.reason,
            custom_job=self.execution.name,
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


class HyperparameterTuning(TuningThread[RunningTrial]):
    """A tuning job from its start to its end, whose trials are custom jobs."""

    def __init__(
        self,
        name: str,
        job: types.HyperparameterTuningJob,
        spec: StudySpec,
        jobs: JobService,
        folder: Path,
    ) -> None:
        """Raise DistrainError where the engine is missing that suggests trials."""
        super().__init__(name, spec, SearchEngine(spec))
        self._jobs = jobs
        self._folder = folder
        self._lock = threading.Lock()
        self._job = job
        self._resource = JobResource(job, name, JobStates.JOB_STATE_PENDING)

    def cancel(self) -> None:
        """Have it stopped soon, with its trials."""
        if self._resource.cancel():
            self.cancelled.set()

    def message(self) -> types.HyperparameterTuningJob:
        """Return a copy of the job as it stands, with its trials."""
        job: types.HyperparameterTuningJob = self._resource.message()
        study = job.name.replace("/hyperparameterTuningJobs/", "/studies/")
        with self._lock:
            job.trials = [trial.message(study, self.spec) for trial in self.trials.values()]
        return job

    def begin(self, number: int, values: Mapping[str, Value]) -> None:
        place = TrialPlace(str(number), self._folder / str(number))
        place.folder.mkdir(parents=True)
        parent = self.name.partition("/hyperparameterTuningJobs/")[0]
        job = job_of_trial(self._job, number, values)
        execution = self._jobs.start(parent, job, place)
        with self._lock:
            metrics = MetricFiles(place.folder)
            self.trials[number] = RunningTrial(number, values, execution, metrics)
        self._resource.enter(JobStates.JOB_STATE_RUNNING)

    def look(self, trial: RunningTrial) -> bool:
        job = trial.execution.resource.message()
        with self._lock:
            trial.metrics.read()
            if job.state in JOB_ENDED:
                trial.conclude(job, self.spec)
                self.conclude(trial)
                _log.info("trial %s: %s %s", trial.number, trial.state.name, trial.reason)
            return bool(trial.state == States.ACTIVE)

    def stop(self, trial: RunningTrial, why: str) -> None:
        if why:
            _log.info("trial %s: %s", trial.number, why)
            with self._lock:
                trial.state = States.STOPPING
        trial.execution.cancel()

    def ending(self, trial: RunningTrial) -> Ending:
        return "succeeded" if trial.state == States.SUCCEEDED else "failed"

    def rows(self, trial: RunningTrial) -> list[Row]:
        return trial.reports.rows(self.spec.goals[0].metric)

    def values(self, trial: RunningTrial) -> tuple[float, ...]:
        return tuple(trial.final(self.spec).values())

    def decide(self) -> bool:
        if self.cancelled.is_set():
            return True
        failed, most = self.with_ending("failed"), self.spec.max_failed
        if len(failed) >= most if most else self.all_failed_at_first():
            count = f"{len(failed)} trial{'s' if len(failed) > 1 else ''} failed"
            self.failure = f"Too many failed trials: {count}. The last: {failed[-1].reason}"
        return bool(self.failure)

    def finish(self, end: Literal["succeeded", "failed", "cancelled"], reason: str = "") -> None:
        if end == "failed" and not reason:
            reason = f"No trial succeeded. The last: {self.trials[len(self.trials)].reason}"
        self._resource.enter(JobStates[f"JOB_STATE_{end.upper()}"], reason)


def job_of_trial(
    tuning_job: types.HyperparameterTuningJob, number: int, values: Mapping[str, Value]
) -> types.CustomJob:
    """Return the custom job of a trial: its values as arguments of each replica, and a folder of
    its own below the study's."""
    spec = copy.deepcopy(tuning_job.trial_job_spec)
    for pool in spec.worker_pool_specs:
        if pool.replica_count:
            args_of(pool).extend(f"--{name}={value}" for name, value in values.items())
    base = spec.base_output_directory.output_uri_prefix
    if base:
        spec.base_output_directory.output_uri_prefix = f"{base.rstrip('/')}/{number}"
    return types.CustomJob(display_name=f"{tuning_job.display_name}-{number}", job_spec=spec)


def _time(seconds: float) -> Any:
    return datetime.fromtimestamp(seconds, timezone.utc)
