"""The job service: custom jobs are created, described, listed and cancelled."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.cloud.aiplatform_v1 import types

from distrain_nb.places.vertex.stand_in.checks import refuse
from distrain_nb.places.vertex.stand_in.execution import CustomJobContext, CustomJobExecution
from distrain_nb.places.vertex.stand_in.job_resource import JobResource, States
from distrain_nb.places.vertex.stand_in.refusals import denied, invalid, not_found, quota_exceeded
from distrain_nb.places.vertex.stand_in.replicas import TrialPlace
from distrain_nb.places.vertex.stand_in.secret_manager import PERMISSION
from distrain_nb.rehearsal.failures import ApiError
from distrain_nb.rehearsal.paging import page_at

_PARENT = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<region>[a-z0-9-]+)")
_PAGE = 100
_FILTER = re.compile(r"""(labels\.)?"?(?P<field>[\w-]+)"?\s*=\s*"?(?P<value>[\w.:-]*)"?""")


class JobService:
    """Every custom job of a rehearsal."""

    def __init__(self, context: CustomJobContext) -> None:
        self._context = context
        self._faults = context.faults
        self._lost = itertools.count()
        self._executions: dict[str, CustomJobExecution] = {}

    def create(self, request: types.CreateCustomJobRequest) -> types.CustomJob:
        """Accept a job and start it. Raises ApiError as the service would."""
        execution = self.start(request.parent, request.custom_job)
        self.lose_answer()
        return self.get(execution.name)

    def lose_answer(self) -> None:
        """Raise ApiError although the job exists, as often as the faults say."""
        if next(self._lost) < self._faults.lost:
            raise ApiError("UNAVAILABLE", "The service is currently unavailable.")

    def refuse(self, parent: str, display_name: str, spec: types.CustomJobSpec) -> None:
        """Raise ApiError for an invalid job below `parent` (`projects/P/locations/R`)."""
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
        self, parent: str, requested: types.CustomJob, trial: TrialPlace | None = None
    ) -> CustomJobExecution:
        """Start a job below `parent`; `trial` is that of a study."""
        self.refuse(parent, requested.display_name, requested.job_spec)
        name = f"{parent}/customJobs/{time.time_ns()}"
        resource = JobResource(requested, name, States.JOB_STATE_QUEUED)
        execution = CustomJobExecution(resource, requested.job_spec, self._context, trial)
        self._executions[name] = execution
        execution.start()
        return execution

    def get(self, name: str) -> types.CustomJob:
        """Return a copy of the job in its present state."""
        job: types.CustomJob = self._find(name).resource.message()
        return job

    def list(self, request: types.ListCustomJobsRequest) -> types.ListCustomJobsResponse:
        """Return a page of the jobs that match the filter, the newest first."""
        listed, token = page_of_jobs(map(self.get, list(self._executions)), request)
        return types.ListCustomJobsResponse(custom_jobs=listed, next_page_token=token)

    def cancel(self, name: str) -> None:
        """Ask a job to end; one that has ended stays as it is."""
        self._find(name).cancel()

    def close(self) -> None:
        """Cancel the running jobs and wait for them."""
        executions = list(self._executions.values())
        for execution in executions:
            execution.cancel()
        for execution in executions:
            execution.join()

    def _find(self, name: str) -> CustomJobExecution:
        if name not in self._executions:
            raise not_found(name)
        return self._executions[name]


def page(rows: Sequence[Any], request: Any) -> tuple[Sequence[Any], str]:
    """Return the part of the results that a request asks for, and the token of the next part."""
    return page_at(rows, request.page_token, request.page_size or _PAGE)


def page_of_jobs(jobs: Iterable[Any], request: Any) -> tuple[Sequence[Any], str]:
    """Return the part of the jobs below a parent that a request asks for, the newest first, and the
    token of the next part. Raises ApiError for a filter that can't be read."""
    fields = _parse_filter(request.filter)
    below = [job for job in jobs if job.name.startswith(f"{request.parent}/")]
    return page([job for job in reversed(below) if _matches(job, fields)], request)


def _parse_filter(text: str) -> Mapping[str, str]:
    """Parse a filter into values by field. Raises ApiError for one that can't be read."""
    fields = {}
    for part in filter(str.strip, re.split(r"\s+AND\s+", text)):
        match = _FILTER.fullmatch(part.strip())
        if match is None:
            raise invalid(f"Provided filter is not valid: {part!r}")
        fields[(match[1] or "") + match["field"]] = match["value"]
    return fields


def _matches(job: Any, fields: Mapping[str, str]) -> bool:
    """Return whether a job has what a filter asks for."""
    has = {f"labels.{name}": value for name, value in job.labels.items()}
    has |= {"display_name": job.display_name, "state": job.state.name}
    return all(has.get(name) == value for name, value in fields.items())
