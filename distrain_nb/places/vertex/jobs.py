"""Custom jobs and training pipelines: created once, observed, cancelled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from google.api_core import exceptions

from distrain_nb.backends.remote.service import Gone, Observed, Unanswered
from distrain_nb.places.vertex import client
from distrain_nb.places.vertex.request import RUN_LABEL
from distrain_nb.types import JsonObject, Value
from distrain_nb.worker.files.status import State
from distrain_nb.worker.supervisor.retries import PREEMPTION

# A request that is answered so may have arrived.
LOST = (exceptions.ServerError, exceptions.Aborted, exceptions.Cancelled)

_STATES = {
    "QUEUED": (State.QUEUED, "queued"),
    "PENDING": (State.STARTING, "preparing machines"),
    "RUNNING": (State.RUNNING, "running"),
    "SUCCEEDED": (State.SUCCEEDED, "succeeded"),
    "PARTIALLY_SUCCEEDED": (State.SUCCEEDED, "succeeded in part"),
    "FAILED": (State.FAILED, "failed"),
    "CANCELLING": (State.STOPPING, "stopping"),
    "CANCELLED": (State.CANCELLED, "cancelled"),
    "PAUSED": (State.QUEUED, "paused"),
    "EXPIRED": (State.FAILED, "expired"),
    "UPDATING": (State.RUNNING, "being updated"),
}
_ROLES = ("primary", "worker", "server", "evaluator")
_PREEMPTED = re.compile(r"\bpreempt", re.IGNORECASE)
_REPLICA = re.compile(r"\bThe replica workerpool([0-3])-(\d+)\b")


class Jobs:
    """The jobs of a project in a region; `endpoints` are a rehearsal's, or empty.

    `kind` is how the client's methods call them.
    """

    kind: ClassVar[str]

    def __init__(self, project: str, region: str, endpoints: Mapping[str, str]) -> None:
        self._parent = f"projects/{project}/locations/{region}"
        self._region = region
        self._endpoints = endpoints

    def create(self, request: JsonObject) -> str:
        """Send a request and give the job's name. Raises DistrainError, Unanswered if the job may
        be there all the same."""
        with client.plain_words("submit the job"):
            try:
                return self._send(request)
            except LOST as error:
                raise Unanswered(f"Vertex AI didn't answer: {error.message}") from error

    def find(self, run: str) -> str:
        """Return the job whose label names the run; empty if there is none. Raises
        DistrainError."""
        with client.plain_words("look for the job"):
            return self._find(f'labels.{RUN_LABEL}="{run}"')

    def observe(self, job: str) -> Observed:
        """State and phase, and why the job failed. Raises DistrainError, Gone if it was deleted."""
        with client.plain_words("ask how the job is doing"):
            try:
                answer = self._get(job)
            except exceptions.NotFound as error:
                raise Gone("Vertex AI doesn't have the job any more: it was deleted") from error
        name = answer.state.name.partition("_STATE_")[2]
        state, phase = _STATES.get(name, (State.STARTING, "not known yet"))
        if state is not State.FAILED:
            return Observed(state, phase)
        message = readable(answer.error.message) or f"Vertex AI: {phase}"
        return Observed(
            state, phase, message, cause=PREEMPTION if _PREEMPTED.search(message) else ""
        )

    def cancel(self, job: str) -> None:
        """Ask for it; a job that has ended stays as it is. Raises DistrainError."""
        with client.plain_words("cancel the job"):
            try:
                self._cancel(job)
            except exceptions.FailedPrecondition:
                return

    def custom_job(self, job: str) -> str:
        """Return the name of the custom job that does the work; empty as long as there is none."""
        return job

    @cached_property
    def _client(self) -> Value:
        return client.job_client(self._region, self._endpoints)

    def _call(self, method: str, *request: JsonObject, **fields: str) -> Value:
        call = getattr(self._client, method)
        return call(*request, **fields, retry=client.retries(), timeout=client.CALL_S)

    def _find(self, where: str) -> str:
        jobs = self._call(f"list_{self.kind}s", {"parent": self._parent, "filter": where})
        return next((str(job.name) for job in jobs), "")

    def _send(self, request: JsonObject) -> str:
        from google.cloud.aiplatform_v1 import types
        from google.protobuf.json_format import ParseDict

        kind = getattr(types, self.kind.title().replace("_", ""))
        job = {self.kind: kind.wrap(ParseDict(dict(request), kind.pb(kind())))}
        create = getattr(self._client, f"create_{self.kind}")
        return str(create(parent=self._parent, **job, retry=None, timeout=client.CALL_S).name)

    def _get(self, job: str) -> Value:
        return self._call(f"get_{self.kind}", name=job)

    def _cancel(self, job: str) -> None:
        self._call(f"cancel_{self.kind}", name=job)


class CustomJobs(Jobs):
    """Jobs by themselves."""

    kind = "custom_job"


class Pipelines(Jobs):
    """Jobs in training pipelines."""

    kind = "training_pipeline"

    @cached_property
    def _client(self) -> Value:
        return client.pipeline_client(self._region, self._endpoints)

    def custom_job(self, job: str) -> str:
        with client.plain_words("ask which job the pipeline runs"):
            metadata: Value = self._get(job).training_task_metadata
        return str((metadata or {}).get("backingCustomJob", ""))


def readable(message: str) -> str:
    """Return the service's words, with replicas by their role and links left to where links are."""
    text = re.sub(r"\s*To find out more[^\n]*https?://\S*", "", message).strip()
    return _REPLICA.sub(lambda match: f"Replica {_ROLES[int(match[1])]} {match[2]}", text)
