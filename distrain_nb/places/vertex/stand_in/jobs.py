"""The job service: custom jobs that are created, looked at and cancelled.

The pipeline service: training pipelines of the custom task, each around a custom job.
"""

from __future__ import annotations

import copy
import itertools
import logging
import re
import threading
import time
from collections.abc import Mapping
from contextvars import copy_context
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format, struct_pb2

from distrain_nb.places.vertex.stand_in.entries import Entries
from distrain_nb.places.vertex.stand_in.execution import PERMISSION, CustomJobExecution
from distrain_nb.places.vertex.stand_in.refusals import denied, invalid, not_found, quota_exceeded
from distrain_nb.places.vertex.stand_in.replicas import TrialPlace, refuse
from distrain_nb.rehearsal.faults import ApiError

if TYPE_CHECKING:
    from distrain_nb.places.vertex.stand_in.buckets import Buckets
    from distrain_nb.rehearsal.engine import Engine
    from distrain_nb.rehearsal.faults import Faults

# typed as the integers that they are in the protocol, where fields want the enum
States: Any = types.JobState
ENDED = (
    States.JOB_STATE_SUCCEEDED,
    States.JOB_STATE_FAILED,
    States.JOB_STATE_CANCELLED,
)

_log = logging.getLogger(__name__)

_PARENT = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<region>[a-z0-9-]+)")
_PAGE = 100
_FILTER = re.compile(r"""(labels\.)?"?(?P<field>[\w-]+)"?\s*=\s*"?(?P<value>[\w.:-]*)"?""")


def now() -> Any:
    """Return the time as the fields of the protocol take it."""
    return datetime.now(timezone.utc)


class JobService:
    """Every custom job of a rehearsal."""

    def __init__(self, engine: Engine, buckets: Buckets, entries: Entries, faults: Faults) -> None:
        self._engine = engine
        self._buckets = buckets
        self._entries = entries
        self._faults = faults
        self._context = copy_context()  # in which the steps of jobs are reported
        self._lost = itertools.count()
        self._jobs: dict[str, types.CustomJob] = {}
        self._executions: dict[str, CustomJobExecution] = {}
        self._lock = threading.Lock()

    def create(self, request: types.CreateCustomJobRequest) -> types.CustomJob:
        """Take a job and start it. Raises ApiError as the service would."""
        job = self.start(request.parent, request.custom_job)
        self.lose_answer()
        return job

    def lose_answer(self) -> None:
        """Raise ApiError, as many times as the faults say, for a job that exists nevertheless."""
        if next(self._lost) < self._faults.lost:
            raise ApiError("UNAVAILABLE", "The service is currently unavailable.")

    def refuse(self, parent: str, display_name: str, spec: types.CustomJobSpec) -> None:
        """Raise ApiError for a job below `parent` (`projects/P/locations/R`) that can't be."""
        place = _PARENT.fullmatch(parent)
        if place is None:
            raise invalid(f"parent {parent!r} is not projects/PROJECT/locations/REGION")
        if self._faults.permission not in ("", PERMISSION):
            raise denied(self._faults.permission, parent)
        if not display_name:
            raise invalid("display_name is required.")
        refuse(spec, place["region"])
        if self._faults.quota:
            raise quota_exceeded(self._faults.quota)

    def start(
        self, parent: str, spec_of_job: types.CustomJob, trial: TrialPlace | None = None
    ) -> types.CustomJob:
        """Start a job below `parent`, that of a study's `trial`."""
        self.refuse(parent, spec_of_job.display_name, spec_of_job.job_spec)
        job = copy.deepcopy(spec_of_job)
        with self._lock:
            number = str(time.time_ns())
            job.name = f"{parent}/customJobs/{number}"
            job.state = States.JOB_STATE_QUEUED
            job.create_time = job.update_time = now()
            self._jobs[job.name] = job
            execution = CustomJobExecution(
                job.name,
                job.job_spec,
                self._engine,
                self._buckets,
                self._entries,
                self._faults,
                self._enter,
                self._context.copy(),
                trial,
            )
            self._executions[job.name] = execution
        execution.start()
        return self.get(job.name)

    def get(self, name: str) -> types.CustomJob:
        """Return a copy of the job as it stands."""
        with self._lock:
            if name not in self._jobs:
                raise not_found(name)
            return copy.deepcopy(self._jobs[name])

    def list(self, request: types.ListCustomJobsRequest) -> types.ListCustomJobsResponse:
        """Return a page of the jobs that the filter lets through, the newest first."""
        fields = parse_filter(request.filter)
        with self._lock:
            names = [name for name in self._jobs if name.startswith(request.parent + "/")]
        listed, token = page(
            [job for job in map(self.get, reversed(names)) if matches(job, fields)], request
        )
        return types.ListCustomJobsResponse(custom_jobs=listed, next_page_token=token)

    def cancel(self, name: str) -> None:
        """Ask a job to end; one that has ended stays as it is."""
        job = self.get(name)
        if job.state not in ENDED:
            self._enter(name, States.JOB_STATE_CANCELLING)
            self._executions[name].cancel()

    def close(self) -> None:
        """Cancel what runs, and wait for it."""
        for name, execution in list(self._executions.items()):
            self.cancel(name)
            execution.join()

    def _enter(self, name: str, state: Any, error: str = "") -> None:
        with self._lock:
            job = self._jobs[name]
            if job.state == States.JOB_STATE_CANCELLING and state not in ENDED:
                return
            job.state, job.update_time = state, now()
            _log.info("%s: %s", name, error or States(state).name)
            if state == States.JOB_STATE_RUNNING and not job.start_time:
                job.start_time = job.update_time
            if state in ENDED:
                job.end_time = job.update_time
            if error:
                job.error = {"code": 3, "message": error}


def page(rows: list[Any], request: Any) -> tuple[list[Any], str]:
    """Return the part of what was found that a request asks for, and the token of the next part."""
    start = int(request.page_token or 0)
    end = start + (request.page_size or _PAGE)
    return rows[start:end], str(end) if end < len(rows) else ""


def parse_filter(text: str) -> Mapping[str, str]:
    """Parse a filter into values by field. Raises ApiError for one that can't be read."""
    fields = {}
    for part in filter(str.strip, re.split(r"\s+AND\s+", text)):
        match = _FILTER.fullmatch(part.strip())
        if match is None:
            raise invalid(f"Provided filter is not valid: {part!r}")
        fields[(match[1] or "") + match["field"]] = match["value"]
    return fields


def matches(job: Any, fields: Mapping[str, str]) -> bool:
    """Return whether a job has what a filter asks for."""
    has = {f"labels.{name}": value for name, value in job.labels.items()}
    has |= {"display_name": job.display_name, "state": job.state.name}
    return all(has.get(name) == value for name, value in fields.items())


CUSTOM_TASK = "schema/trainingjob/definition/custom_task_1.0.0.yaml"
_STATES: Any = types.PipelineState
_STATE_OF: dict[Any, Any] = {
    types.JobState.JOB_STATE_QUEUED: _STATES.PIPELINE_STATE_QUEUED,
    types.JobState.JOB_STATE_PENDING: _STATES.PIPELINE_STATE_PENDING,
    types.JobState.JOB_STATE_RUNNING: _STATES.PIPELINE_STATE_RUNNING,
    types.JobState.JOB_STATE_SUCCEEDED: _STATES.PIPELINE_STATE_SUCCEEDED,
    types.JobState.JOB_STATE_FAILED: _STATES.PIPELINE_STATE_FAILED,
    types.JobState.JOB_STATE_CANCELLING: _STATES.PIPELINE_STATE_CANCELLING,
    types.JobState.JOB_STATE_CANCELLED: _STATES.PIPELINE_STATE_CANCELLED,
}


class PipelineService:
    """Every training pipeline of a rehearsal."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs = jobs
        self._pipelines: dict[str, tuple[types.TrainingPipeline, str]] = {}
        self._lock = threading.Lock()

    def create(self, request: types.CreateTrainingPipelineRequest) -> types.TrainingPipeline:
        """Start the custom job that the pipeline's inputs describe. Raises ApiError."""
        requested = request.training_pipeline
        if not requested.training_task_definition.endswith(CUSTOM_TASK):
            raise invalid(
                f"training_task_definition {requested.training_task_definition!r} is not "
                f"rehearsed; allowed is …/{CUSTOM_TASK}"
            )
        job = types.CustomJob(display_name=requested.display_name, labels=dict(requested.labels))
        inputs = json_format.MessageToDict(type(requested).pb(requested).training_task_inputs)
        try:
            spec = json_format.ParseDict(inputs, types.CustomJobSpec.pb(types.CustomJobSpec()))
        except json_format.ParseError as error:
            raise invalid(f"training_task_inputs: {error}") from None
        job.job_spec = types.CustomJobSpec.wrap(spec)
        started = self._jobs.start(request.parent, job)
        pipeline = copy.deepcopy(requested)
        pipeline.name = f"{request.parent}/trainingPipelines/{time.time_ns()}"
        pipeline.create_time = now()
        with self._lock:
            self._pipelines[pipeline.name] = (pipeline, started.name)
        return self.get(pipeline.name)

    def get(self, name: str) -> types.TrainingPipeline:
        """Return the pipeline, as its job stands."""
        pipeline, job = self._find(name)
        current = self._jobs.get(job)
        shown = copy.deepcopy(pipeline)
        shown.state = _STATE_OF[current.state]
        shown.update_time = current.update_time
        for field in ("start_time", "end_time"):
            if getattr(current, field):
                setattr(shown, field, getattr(current, field))
        if current.error.message:
            shown.error = current.error
        types.TrainingPipeline.pb(shown).training_task_metadata.CopyFrom(_metadata(job))
        return shown

    def list(self, request: types.ListTrainingPipelinesRequest) -> Any:
        """Return a page of the pipelines, the newest first, by label as jobs are."""
        with self._lock:
            pairs = [(name, job) for name, (_, job) in self._pipelines.items()]
        names_of_jobs = {job.name for job in self._all_jobs(request)}
        listed = [self.get(name) for name, job in reversed(pairs) if job in names_of_jobs]
        listed, token = page(listed, request)
        return types.ListTrainingPipelinesResponse(training_pipelines=listed, next_page_token=token)

    def cancel(self, name: str) -> None:
        """Cancel its job."""
        self._jobs.cancel(self._find(name)[1])

    def _find(self, name: str) -> tuple[types.TrainingPipeline, str]:
        with self._lock:
            if name not in self._pipelines:
                raise not_found(name)
            return self._pipelines[name]

    def _all_jobs(self, request: types.ListTrainingPipelinesRequest) -> Any:
        query = types.ListCustomJobsRequest(
            parent=request.parent, filter=request.filter, page_size=len(self._pipelines) + 1000
        )
        return self._jobs.list(query).custom_jobs


def _metadata(job: str) -> struct_pb2.Value:
    """Return the metadata of a custom task: the job that it runs."""
    metadata = struct_pb2.Struct()
    metadata.update({"backingCustomJob": job})
    return struct_pb2.Value(struct_value=metadata)
