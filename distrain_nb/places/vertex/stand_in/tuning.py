"""Tuning jobs: trials are suggested, run as custom jobs, stopped early, and counted."""

from __future__ import annotations

import copy
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from google.cloud.aiplatform_v1 import types
from google.protobuf.json_format import MessageToDict

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import errors
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.places.vertex.stand_in.jobs import ENDED as JOB_ENDED
from distrain_nb.places.vertex.stand_in.jobs import matches, now, page, wanted_by
from distrain_nb.places.vertex.stand_in.refusals import invalid, not_found
from distrain_nb.places.vertex.stand_in.replicas import TrialPlace
from distrain_nb.places.vertex.stand_in.trials import ENDED, RunningTrial, States, job_of_trial
from distrain_nb.rehearsal.errors import ApiError
from distrain_nb.tuning.engine import SearchEngine
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import ConvexStopping, StudyEnd
from distrain_nb.tuning.stopping import reason_to_stop

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.places.vertex.stand_in.jobs import JobService
    from distrain_nb.tuning.spec import StudySpec

_log = logging.getLogger(__name__)

JobStates: Any = types.JobState
_LOOK_EVERY_S = 0.2
_ALL_FAILED_AT_FIRST = 3  # trials, with which a job fails that leaves it to the service


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
        fields = wanted_by(request.filter)
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


class HyperparameterTuning:
    """A tuning job from its start to its end, on a thread of its own."""

    def __init__(
        self,
        name: str,
        job: types.HyperparameterTuningJob,
        spec: StudySpec,
        jobs: JobService,
        folder: Path,
    ) -> None:
        """Raise DistrainError where the engine is missing that suggests trials."""
        self._spec = spec
        self._jobs = jobs
        self._folder = folder
        self._engine = SearchEngine(spec)
        self._exhausted = False
        self._trials: list[RunningTrial] = []
        self._cancelled = threading.Event()
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._job = copy.deepcopy(job)
        self._job.name, self._job.state = name, JobStates.JOB_STATE_PENDING
        self._job.create_time = self._job.update_time = now()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def cancel(self) -> None:
        """Have it stopped soon, with its trials."""
        with self._lock:
            if self._job.state not in JOB_ENDED:
                self._enter(JobStates.JOB_STATE_CANCELLING)
                self._cancelled.set()

    def shown(self) -> types.HyperparameterTuningJob:
        """Return a copy as it stands."""
        with self._lock:
            job = copy.deepcopy(self._job)
            study = job.name.replace("/hyperparameterTuningJobs/", "/studies/")
            job.trials = [trial.message(study, self._spec) for trial in self._trials]
            return job

    def _run(self) -> None:
        try:
            self._tune()
        except Exception as error:  # whatever it was, the job must not seem to run for ever
            _log.exception("the tuning job %s can't go on", self._job.name)
            for trial in self._trials:
                self._stop(trial)
            self._enter(JobStates.JOB_STATE_FAILED, f"Internal error: {error!r}")

    def _tune(self) -> None:
        while True:
            active = [trial for trial in self._trials if trial.state not in ENDED]
            failure = self._failure()
            for trial in active:
                self._look_after(trial, ends=bool(failure) or self._cancelled.is_set())
            if not failure and not self._cancelled.is_set() and self._begins(len(active)):
                continue
            if not active:
                return self._end(failure)
            time.sleep(_LOOK_EVERY_S)

    def _begins(self, active: int) -> bool:
        """Start one more trial, if there is one to start."""
        full = active >= self._spec.parallel or len(self._trials) >= self._spec.trials
        values = None if full or self._exhausted else self._engine.ask()
        if values is None:
            self._exhausted = self._exhausted or not full
            return False
        number = len(self._trials) + 1
        trial = RunningTrial(number, values, self._folder / str(number))
        trial.folder.mkdir(parents=True)
        place = TrialPlace(str(number), trial.folder)
        parent = self._job.name.partition("/hyperparameterTuningJobs/")[0]
        trial.job = self._jobs.start(parent, job_of_trial(self._job, trial), place).name
        with self._lock:
            trial.state = States.ACTIVE
            self._trials.append(trial)
            self._enter(JobStates.JOB_STATE_RUNNING)
        return True

    def _look_after(self, trial: RunningTrial, *, ends: bool) -> None:
        job = self._jobs.get(trial.job)
        with self._lock:
            trial.read()
            if job.state in JOB_ENDED:
                trial.conclude(job, self._spec)
                self._engine.tell(trial.number, trial.outcome(self._spec))
                _log.info("trial %s: %s %s", trial.number, trial.state.name, trial.reason)
                return
            if trial.state == States.ACTIVE and not ends and self._is_hopeless(trial):
                trial.state = States.STOPPING
                ends = True
        if ends:
            self._stop(trial)

    def _stop(self, trial: RunningTrial) -> None:
        if self._jobs.get(trial.job).state != JobStates.JOB_STATE_CANCELLING:
            self._jobs.cancel(trial.job)

    def _is_hopeless(self, trial: RunningTrial) -> bool:
        """Return whether it is to be stopped before its time."""
        rule, goal = self._spec.stopping, self._spec.goals[0]
        if rule is None:
            return False
        by_time = bool(getattr(rule, "use_elapsed_duration", False))
        ended = [
            trial.curve(goal.metric, by_time=by_time)
            for trial in self._trials
            if trial.state == States.SUCCEEDED
        ]
        curve = trial.curve(goal.metric, by_time=by_time)
        return bool(reason_to_stop(rule, goal.direction, curve, ended))

    def _failure(self) -> str:
        """Return why the job fails before it has all its trials."""
        ended = [trial for trial in self._trials if trial.state in ENDED]
        failed = [trial for trial in ended if trial.state == States.INFEASIBLE]
        if self._cancelled.is_set() or not failed:
            return ""
        most = self._spec.max_failed or 0
        all_failed = len(failed) == len(ended) >= max(_ALL_FAILED_AT_FIRST, self._spec.parallel)
        if (most and len(failed) >= most) or (not most and all_failed):
            count = f"{len(failed)} trial{'s' if len(failed) > 1 else ''} failed"
            return f"Too many failed trials: {count}. The last: {failed[-1].reason}"
        return ""

    def _end(self, failure: str) -> None:
        values = any(trial.state == States.SUCCEEDED for trial in self._trials)
        if self._cancelled.is_set():
            self._enter(JobStates.JOB_STATE_CANCELLED)
        elif failure or not values:
            message = failure or f"No trial succeeded. The last: {self._trials[-1].reason}"
            self._enter(JobStates.JOB_STATE_FAILED, message)
        else:
            self._enter(JobStates.JOB_STATE_SUCCEEDED)

    def _enter(self, state: Any, error: str = "") -> None:
        with self._lock:
            job = self._job
            if job.state == state or (
                job.state == JobStates.JOB_STATE_CANCELLING and state not in JOB_ENDED
            ):
                return
            job.state, job.update_time = state, now()
            _log.info("%s: %s", job.name, error or JobStates(state).name)
            if state == JobStates.JOB_STATE_RUNNING:
                job.start_time = job.update_time
            if state in JOB_ENDED:
                job.end_time = job.update_time
            if error:
                job.error = {"code": 3, "message": error}


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
