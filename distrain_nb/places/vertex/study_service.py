"""A study on Vertex AI, as a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from distrain_nb.backends.tuning import ServiceStudy, ServiceTrial
from distrain_nb.places.vertex import client
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.places.vertex.jobs import Jobs
from distrain_nb.places.vertex.plan import VertexSpec
from distrain_nb.places.vertex.service import CONSOLE, VertexService
from distrain_nb.places.vertex.tuning_jobs import TuningJobs, epoch_seconds, service_trial


class VertexStudy(VertexService):
    """A study on Vertex AI, or on a rehearsal's stand-in."""

    def study(self, job: str) -> ServiceStudy:
        """Return the spec it was created with. Raises DistrainError."""
        from google.protobuf.json_format import MessageToDict

        with client.plain_words("ask what the tuning job tries"):
            answer = self._tuning_jobs.get(job)
        asked = MessageToDict(type(answer).pb(answer))
        asked.pop("trialJobSpec", None)
        spec = from_tuning_job(asked).spec
        return ServiceStudy(answer.display_name, epoch_seconds(answer.create_time), spec)

    def trials(self, job: str) -> Sequence[ServiceTrial]:
        """Return all trials so far. Raises DistrainError."""
        with client.plain_words("ask for the trials"):
            return [service_trial(trial) for trial in self._tuning_jobs.get(job).trials]

    def trial_spec(self, job: str, trial: ServiceTrial) -> VertexSpec:
        """Return where the job of a trial is, and its output: below the study's, by the trial's
        number."""
        spec, number = self.spec, str(trial.number)
        return VertexSpec(
            job=trial.job,
            run=f"{spec.run}/{number}" if spec.run else "",
            project=spec.project,
            region=spec.region,
            bucket=spec.bucket,
            tuning_job=job,
            trial=number,
        )

    def links(self, job: str) -> Mapping[str, str]:
        """Return the study and its trials' folders in the console."""
        if self.endpoints:
            return {}
        place, number = f"locations/{self.spec.region}/studies", job.rpartition("/")[2]
        study = f"{CONSOLE}/vertex-ai/{place}/{number}?project={self.spec.project}"
        if not self.spec.run:
            return {"study": study}
        folder = f"{CONSOLE}/storage/browser/{self.spec.bucket}/{self._folder}"
        return {"study": study, "trials": folder.rstrip("/")}

    @cached_property
    def _jobs(self) -> Jobs:
        return self._tuning_jobs

    @cached_property
    def _tuning_jobs(self) -> TuningJobs:
        return TuningJobs(self.spec.project, self.spec.region, self.endpoints)
