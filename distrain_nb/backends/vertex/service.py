"""A job on Vertex AI, from its code to its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.delivery import Laid, loose_files
from distrain_nb.backends.remote.variables import filled
from distrain_nb.backends.vertex import client, delivery, request
from distrain_nb.backends.vertex.jobs import CustomJobs, Jobs, Pipelines
from distrain_nb.backends.vertex.logs import Patience, read
from distrain_nb.backends.vertex.output import BucketOutput
from distrain_nb.backends.vertex.request import with_variables
from distrain_nb.image import CloudBuild, Progress, Recipe, build
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.layout.formats.vertex import IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from distrain_nb.backends.remote.service import Cursor, Entry, Observed
    from distrain_nb.image import Listener

CONSOLE = "https://console.cloud.google.com"


@dataclass(frozen=True)
class VertexService:
    """One run: `told` is what `VertexPlan.told` said; `endpoints` are a rehearsal's, or empty;
    `late` among them says by how many seconds entries of the log may be late."""

    told: Mapping[str, Any]
    endpoints: Mapping[str, str]

    @property
    def output(self) -> BucketOutput:
        """The run's folder in its bucket."""
        return BucketOutput(self._storage, self.told["bucket"], self._folder)

    def stage(self, program: Path, tell: Listener) -> Mapping[str, Any]:
        """Build the image, or bring the code to the bucket: whatever the request asks for.

        Raises ImageError, or DistrainError for what Google Cloud refuses.
        """
        laid = Laid(program, tuple(self.told["requirements"]))
        sent: Mapping[str, Any] = self.told["request"]
        text = str(sent)
        if request.PACKAGE_MODULE in text:
            tell(Progress("sending the package"))
            package = delivery.source_distribution(laid, self.told["base"])
            self._put(f"{request.PACKAGE}/{delivery.PACKAGE_FILE}", package)
        if f"/{request.CODE}/program" in text:
            tell(Progress("sending the code"))
            for name, path in loose_files(laid):
                self._put(f"{request.CODE}/{name}", path.read_bytes())
        if IMAGE in text:
            sent = request.with_image(sent, self._image(laid, tell))
        return sent

    def create(self, request: Mapping[str, Any]) -> str:
        """Send the request and give the job's name. Raises DistrainError, Unanswered if the job
        may be there all the same."""
        whole = with_variables(request, lambda told: filled(told, self.told["variables"]))
        return self._jobs.create(whole)

    def find(self, request: Mapping[str, Any]) -> str:  # noqa: ARG002 - the label names the run
        """The run's job, empty if there is none. Raises DistrainError."""
        return self._jobs.find(self.told["run"])

    def observe(self, job: str) -> Observed:
        """How the job is doing. Raises DistrainError."""
        return self._jobs.observe(job)

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[Entry], Cursor]:
        """The lines since the cursor. Raises DistrainError if Cloud Logging can't be reached."""
        number = self._jobs.custom_job(job).rpartition("/")[2]
        if not number:  # a pipeline that has not begun
            return (), cursor
        late = self.endpoints.get("late")
        patience = Patience.of_rehearsal(float(late)) if late else Patience()
        with client.plain_words("read the job's log"):
            return read(self._logging, self.told["project"], number, cursor, patience, last=last)

    def cancel(self, job: str) -> None:
        """Ask for the job to be stopped. Raises DistrainError."""
        self._jobs.cancel(job)

    def links(self, job: str) -> Mapping[str, str]:
        """The job, its log and its folders in the console, which knows nothing of rehearsals."""
        if self.endpoints:
            return {}
        project, region = self.told["project"], self.told["region"]
        number = job.rpartition("/")[2]
        kind = "training-pipelines" if self.told["pipeline"] else "training"
        folder = f"{CONSOLE}/storage/browser/{self.told['bucket']}/{self._folder}"
        query = f"resource.type%3D%22ml_job%22%20resource.labels.job_id%3D%22{number}%22"
        return {
            "job": f"{CONSOLE}/vertex-ai/locations/{region}/{kind}/{number}?project={project}",
            "log": f"{CONSOLE}/logs/query;query={query}?project={project}",
            "model": f"{folder}model",
            "checkpoints": f"{folder}checkpoints",
            "TensorBoard": f"{folder}logs",
        }

    @property
    def _folder(self) -> str:
        return f"distrain/{self.told['run']}/"

    def _put(self, name: str, data: bytes) -> None:
        blob = self._storage.bucket(self.told["bucket"]).blob(self._folder + name)
        with client.plain_words(f"write gs://{self.told['bucket']}/{blob.name}"):
            blob.upload_from_string(data, content_type="application/octet-stream")

    def _image(self, program: Laid, tell: Listener) -> str:
        base, run = self.told["base"], self.told["run"]
        home = self.told["repository"]
        if "registry" in self.endpoints:
            home = f"{self.endpoints['registry']}/rehearsal"
        recipe = Recipe(
            base=base,
            target=f"{home}/{run.rpartition('-')[0]}:{run}",
            look_inside=prebuilt(current(), base) is None,
            guarded=True,
        )
        return build(program, recipe, self._builder(), tell).uri

    def _builder(self) -> str | CloudBuild:
        if self.told["builder"] != "cloudbuild":
            return str(self.told["builder"])
        return CloudBuild(self.told["project"], self.told["bucket"], self.told["region"])

    @cached_property
    def _jobs(self) -> Jobs:
        kind = Pipelines if self.told["pipeline"] else CustomJobs
        return kind(self.told["project"], self.told["region"], self.endpoints)

    @cached_property
    def _storage(self) -> Any:
        with client.plain_words("log in to Cloud Storage"):
            return client.storage_client(self.told["project"], self.endpoints)

    @cached_property
    def _logging(self) -> Any:
        with client.plain_words("log in to Cloud Logging"):
            return client.logging_client(self.endpoints)
