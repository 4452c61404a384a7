"""Tuning jobs are created, looked at, listed and cancelled."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.protobuf.json_format import MessageToDict

from distrain_nb.errors import DistrainError, OptionError
from distrain_nb.findings import errors
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.places.vertex.stand_in.jobs import JobService, page_of_jobs
from distrain_nb.places.vertex.stand_in.refusals import invalid, not_found
from distrain_nb.places.vertex.stand_in.tuning_execution import HyperparameterTuning
from distrain_nb.rehearsal.failures import ApiError
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import ConvexStopping, StudyEnd, StudySpec


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
        return tuning.message()

    def get(self, name: str) -> types.HyperparameterTuningJob:
        """Return a copy of the job as it stands, with its trials."""
        return self._find(name).message()

    def list(self, request: types.ListHyperparameterTuningJobsRequest) -> Any:
        """Return a page of the jobs that the filter lets through, the newest first."""
        jobs = (tuning.message() for tuning in list(self._tuning.values()))
        listed, token = page_of_jobs(jobs, request)
        return types.ListHyperparameterTuningJobsResponse(
            hyperparameter_tuning_jobs=listed, next_page_token=token
        )

    def cancel(self, name: str) -> None:
        """Ask a job and its trials to end; one that has ended stays as it is."""
        self._find(name).cancel()

    def close(self) -> None:
        """Cancel what runs, and wait for it."""
        for tuning in self._tuning.values():
            tuning.cancel()
        for tuning in self._tuning.values():
            tuning.join()

    def _find(self, name: str) -> HyperparameterTuning:
        if name not in self._tuning:
            raise not_found(name)
        return self._tuning[name]


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
