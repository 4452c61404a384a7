"""The job service: custom jobs that are created, looked at and cancelled."""

from __future__ import annotations

import copy
import itertools
import logging
import re
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.execution import CustomJobContext, CustomJobExecution
from distrain_nb.places.vertex.stand_in.refusals import denied, invalid, not_found, quota_exceeded
from distrain_nb.places.vertex.stand_in.replicas import TrialPlace, refuse
from distrain_nb.places.vertex.stand_in.secret_manager import PERMISSION
from distrain_nb.rehearsal.faults import ApiError

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

    def __init__(self, context: CustomJobContext) -> None:
        self._context = context
        self._faults = context.faults
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
                job.name, job.job_spec, self._context, self._enter, trial
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
            self._executions[name].cancelled.set()

    def close(self) -> None:
        """Cancel what runs, and wait for it."""
        for name, execution in list(self._executions.items()):
            self.cancel(name)
            execution.join()

    def _enter(self, name: str, state: Any, error: str = "") -> None:
        with self._lock:
            enter(self._jobs[name], state, error)


def enter(job: Any, state: Any, error: str = "") -> None:
    """Have a job or a tuning job in a state. One that is being cancelled enters only its last."""
    if job.state == state or (job.state == States.JOB_STATE_CANCELLING and state not in ENDED):
        return
    job.state, job.update_time = state, now()
    _log.info("%s: %s", job.name, error or States(state).name)
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
