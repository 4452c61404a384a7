"""Tuning jobs: trials are suggested, run as custom jobs, stopped early, and counted."""

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
from google.protobuf.json_format import MessageToDict

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import errors
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.places.vertex.stand_in.jobs import ENDED as JOB_ENDED
from distrain_nb.places.vertex.stand_in.jobs import (
    JobService,
    enter,
    matches,
    now,
    page,
    parse_filter,
)
from distrain_nb.places.vertex.stand_in.refusals import invalid, not_found
from distrain_nb.places.vertex.stand_in.replicas import METRICS_FILE, TrialPlace, args_of
from distrain_nb.rehearsal.faults import ApiError
from distrain_nb.rehearsal.job_folder import JobFolder
from distrain_nb.rehearsal.tuning_thread import TuningThread
from distrain_nb.tuning.engine import Ending, SearchEngine
from distrain_nb.tuning.reports import HypertuneReports, Row, final_values
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import ConvexStopping, StudyEnd, StudySpec, Value

_log = logging.getLogger(__name__)

JobStates: Any = types.JobState
States: Any = types.Trial.State
_LONGEST_REPORT = 64 << 20


class HyperparameterTuningService:
    """Every tuning job of a rehearsal, whose trials' metric files are below `folder`."""

    def __init__(self, jobs: JobService, folder: Path) -> None:
        self._jobs = jobs
        self._folder = folder
        self._tuning: dict[str, HyperparameterTuning] = {}

    def create(self, request: types.CreateHyperparameterTuningJobRequest) -> Any:
        """Take a tuning job and start it. Raises ApiError as the service would."""
        requested = request.hyperparameter_tuning_job
        self._jobs.refuse(request.parent, requested.display_name, requested.trial_job_spec)
        spec = _study(requested)
        name = f"{request.parent}/hyperparameterTuningJobs/{time.time_ns()}"
        folder = self._folder / name.rpartition("/")[2]
        try:
            tuning = HyperparameterTuning(name, requested, spec, self._jobs, folder)
        except DistrainError as error:
            raise ApiError("FAILED_PRECONDITION", str(error)) from None
        self._tuning[name] = tuning
        tuning.start()
        self._jobs.lose_answer()
        return tuning.shown()

    def get(self, name: str) -> types.HyperparameterTuningJob:
        """Return a copy of the job as it stands, with its trials."""
        return self._find(name).shown()

    def list(self, request: types.ListHyperparameterTuningJobsRequest) -> Any:
        """Return a page of the jobs that the filter lets through, the newest first."""
        fields = parse_filter(request.filter)
        of_parent = [t for n, t in self._tuning.items() if n.startswith(request.parent + "/")]
        shown = (tuning.shown() for tuning in reversed(of_parent))
        listed, token = page([job for job in shown if matches(job, fields)], request)
        return types.ListHyperparameterTuningJobsResponse(
            hyperparameter_tuning_jobs=listed, next_page_token=token
        )

    def cancel(self, name: str) -> None:
        """Ask a job and its trials to end; one that has ended stays as it is."""
        self._find(name).cancel()

    def close(self) -> None:
        """Cancel what runs, and wait for it."""
        for tuning in list(self._tuning.values()):
            tuning.cancel()
            tuning.join()

    def _find(self, name: str) -> HyperparameterTuning:
        if name not in self._tuning:
            raise not_found(name)
        return self._tuning[name]


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
    reports: HypertuneReports = field(default_factory=HypertuneReports)
    _files: dict[str, HypertuneReports] = field(default_factory=dict)

    def read(self) -> None:
        """Take in what has been reported. The file of the first replica that has reports counts."""
        for replica in sorted(self.folder.iterdir()):
            reports = self._files.setdefault(replica.name, HypertuneReports())
            with suppress(OSError), JobFolder(replica).open(METRICS_FILE) as file:
                reports.take(file.read(_LONGEST_REPORT))
            if reports.names:
                self.reports = reports
                return

    def final(self, spec: StudySpec) -> dict[str, float]:
        """Return the value of each goal that counts: the last, or the best."""
        return final_values(spec, self.reports.values)

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
        self._lock = threading.RLock()
        self._job = copy.deepcopy(job)
        self._job.name, self._job.state = name, JobStates.JOB_STATE_PENDING
        self._job.create_time = self._job.update_time = now()

    def cancel(self) -> None:
        """Have it stopped soon, with its trials."""
        with self._lock:
            if self._job.state not in JOB_ENDED:
                self._enter(JobStates.JOB_STATE_CANCELLING)
                self.cancelled.set()

    def shown(self) -> types.HyperparameterTuningJob:
        """Return a copy as it stands."""
        with self._lock:
            job = copy.deepcopy(self._job)
            study = job.name.replace("/hyperparameterTuningJobs/", "/studies/")
            job.trials = [trial.message(study, self.spec) for trial in self.trials.values()]
            return job

    def begin(self, number: int, values: Mapping[str, Value]) -> None:
        trial = RunningTrial(number, values, self._folder / str(number))
        trial.folder.mkdir(parents=True)
        place = TrialPlace(str(number), trial.folder)
        parent = self.name.partition("/hyperparameterTuningJobs/")[0]
        trial.job = self._jobs.start(parent, job_of_trial(self._job, trial), place).name
        with self._lock:
            trial.state = States.ACTIVE
            self.trials[number] = trial
            self._enter(JobStates.JOB_STATE_RUNNING)

    def look(self, trial: RunningTrial) -> bool:
        job = self._jobs.get(trial.job)
        with self._lock:
            trial.read()
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
        if self._jobs.get(trial.job).state != JobStates.JOB_STATE_CANCELLING:
            self._jobs.cancel(trial.job)

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
        self._enter(JobStates[f"JOB_STATE_{end.upper()}"], reason)

    def _enter(self, state: Any, error: str = "") -> None:
        with self._lock:
            enter(self._job, state, error)


def _study(job: types.HyperparameterTuningJob) -> StudySpec:
    """Raise ApiError for what the service would not take, or a rehearsal can't do."""
    if job.max_trial_count < 1 or job.parallel_trial_count < 1:
        raise invalid("max_trial_count and parallel_trial_count are required, and at least 1.")
    if job.parallel_trial_count > job.max_trial_count:
        raise invalid(
            f"parallel_trial_count {job.parallel_trial_count} is more than max_trial_count "
            f"{job.max_trial_count}."
        )
    try:
        spec = from_tuning_job(MessageToDict(type(job).pb(job))).spec
    except OptionError as error:
        raise invalid(str(error)) from None
    findings = errors(check(spec, "vertex"))
    if findings:
        raise invalid(" ".join(f"{finding.where}: {finding.message}" for finding in findings))
    if isinstance(spec.stopping, ConvexStopping) or spec.end != StudyEnd():
        feature = "study_stopping_config" if spec.end != StudyEnd() else "convex stopping"
        raise ApiError("UNIMPLEMENTED", f"A rehearsal has no {feature}.")
    return spec


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


def _time(seconds: float) -> Any:
    return datetime.fromtimestamp(seconds, timezone.utc)
