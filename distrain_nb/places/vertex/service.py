"""A job on Vertex AI, from its code to its end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

from distrain_nb.backends.remote.cloud import CloudService
from distrain_nb.backends.remote.sdk import NoOutput
from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.backends.remote.variables import restored_variables
from distrain_nb.image import CloudBuild
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.layout.formats.images import IMAGE
from distrain_nb.places.vertex import client, request
from distrain_nb.places.vertex.delivery import PACKAGE_FILE, write_archive
from distrain_nb.places.vertex.jobs import CustomJobs, Jobs, Pipelines
from distrain_nb.places.vertex.logs import read
from distrain_nb.places.vertex.plan import VertexSpec
from distrain_nb.places.vertex.request import RUN_LABEL, with_variables
from distrain_nb.places.vertex.resources import make_bucket, make_repository
from distrain_nb.places.vertex.run_output import BucketOutput
from distrain_nb.places.vertex.settings import own_bucket, own_repository
from distrain_nb.places.vertex.storage import CloudStorageData
from distrain_nb.types import JsonObject
from distrain_nb.worker.supervisor.retries import RunAttempt
from distrain_nb.worker.supervisor.retries import variables as retried_variables

if TYPE_CHECKING:
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.storage import Client

    from distrain_nb.backends.remote.delivery import ProgramFolder
    from distrain_nb.backends.remote.service import Cursor, LogEntry, Observed, OutputFolder

CONSOLE = "https://console.cloud.google.com"


@dataclass(frozen=True)
class VertexService(CloudService[VertexSpec]):
    """A job on Vertex AI, or on a rehearsal's stand-in."""

    @property
    def output(self) -> OutputFolder:
        """The run's folder in its bucket."""
        return BucketOutput(self._storage, self.spec.bucket, self._folder)

    def create(self, request: JsonObject) -> str:
        """Send the request and give the job's name. Raises DistrainError, Unanswered if the job
        may be there all the same."""
        return self._jobs.create(
            with_variables(request, lambda hidden: restored_variables(hidden, self.spec.variables))
        )

    def find(self, request: JsonObject) -> str:
        """Return the run's job, empty if there is none. Raises DistrainError."""
        labels = request.get("labels")
        named = labels.get(RUN_LABEL) if isinstance(labels, dict) else None
        return self._jobs.find(str(named or self.spec.run))

    one_log = False

    def prepare_attempt(self, request: JsonObject, attempt: RunAttempt, retries: int) -> JsonObject:
        """Return the request of an attempt: its job has a label of its own, and all else that the
        first had."""
        labels = {RUN_LABEL: f"{self.spec.run}-{attempt.number}"}
        resubmitted = with_variables(
            request, lambda env: {**env, **retried_variables(attempt.number, retries)}
        )
        old = resubmitted.get("labels")
        return {**resubmitted, "labels": {**(old if isinstance(old, dict) else {}), **labels}}

    def observe(self, job: str) -> Observed:
        """Return how the job is doing. Raises DistrainError."""
        return self._jobs.observe(job)

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:
        """Return the lines since the cursor. Raises DistrainError if Cloud Logging can't be
        reached."""
        number = self._jobs.custom_job(job).rpartition("/")[2]
        if not number:  # a pipeline that has not begun
            return (), cursor
        spec = self.spec
        trial_of = (spec.tuning_job.rpartition("/")[2], spec.trial) if spec.trial else None
        with client.plain_words("read the job's log"):
            return read(
                self._logging, spec.project, number, cursor, self._lateness,
                last=last, trial_of=trial_of,
            )  # fmt: skip

    def cancel(self, job: str) -> None:
        """Ask for the job to be stopped. Raises DistrainError."""
        self._jobs.cancel(job)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job, its log and its folders in the console, which knows nothing of
        rehearsals."""
        if self.endpoints:
            return {}
        project, region = self.spec.project, self.spec.region
        number = job.rpartition("/")[2]
        kind = "training-pipelines" if self.spec.pipeline else "training"
        folder = f"{CONSOLE}/storage/browser/{self.spec.bucket}/{self._folder}"
        query = f"resource.type%3D%22ml_job%22%20resource.labels.job_id%3D%22{number}%22"
        return {
            "job": f"{CONSOLE}/vertex-ai/locations/{region}/{kind}/{number}?project={project}",
            "log": f"{CONSOLE}/logs/query;query={query}?project={project}",
            "model": f"{folder}model",
            "checkpoints": f"{folder}checkpoints",
            "TensorBoard": f"{folder}logs",
        }

    @cached_property
    def _data(self) -> CloudStorageData:
        return CloudStorageData(self._storage, self.spec.bucket)

    def _prepare(self) -> None:
        spec = self.spec
        if spec.bucket == own_bucket(spec.project, spec.region):
            make_bucket(self._storage, spec.bucket, spec.region)

    def _staged(self, image: str) -> JsonObject:
        return fill_placeholders(self.spec.request, {IMAGE: image})

    def _write_archive(self, program: ProgramFolder, file: IO[bytes]) -> str:
        write_archive(program, self.spec.base, file)
        return f"{request.PACKAGE}/{PACKAGE_FILE}"

    def _put(self, name: str, file: IO[bytes]) -> None:
        blob = self._storage.bucket(self.spec.bucket).blob(self._folder + name)
        size = os.fstat(file.fileno()).st_size
        with client.plain_words(f"write gs://{self.spec.bucket}/{blob.name}"):
            blob.upload_from_file(file, size=size, content_type="application/octet-stream")

    def _repository(self) -> str:
        home, run = self.spec.repository, self.spec.run
        if "registry" in self.endpoints:
            home = f"{self.endpoints['registry']}/rehearsal"
        elif home == own_repository(self.spec.project, self.spec.region):
            make_repository(self.spec.project, self.spec.region, home.rpartition("/")[2])
        return f"{home}/{run.rpartition('-')[0]}"

    @property
    def _looks_inside(self) -> bool:
        return prebuilt(current(), self.spec.base) is None

    @property
    def _runs_bare_processes(self) -> bool:
        return bool(self.endpoints)

    def _builder(self) -> str | CloudBuild:
        if self.spec.builder != "cloudbuild":
            return self.spec.builder
        return CloudBuild(self.spec.project, self.spec.bucket, self.spec.region)

    @cached_property
    def _jobs(self) -> Jobs:
        kind = Pipelines if self.spec.pipeline else CustomJobs
        return kind(self.spec.project, self.spec.region, self.endpoints)

    @cached_property
    def _storage(self) -> Client:
        with client.plain_words("log in to Cloud Storage"):
            return client.storage_client(self.spec.project, self.endpoints)

    @cached_property
    def _logging(self) -> LoggingServiceV2Client:
        with client.plain_words("log in to Cloud Logging"):
            return client.logging_client(self.endpoints)


class ForeignService(VertexService):
    """A job that the SDK has started: its state, its log, its end."""

    @property
    def output(self) -> NoOutput:
        """Empty: only our worker writes event files and results where we look for them."""
        return NoOutput()

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job and its log in the console."""
        return {name: link for name, link in super().links(job).items() if name in ("job", "log")}
