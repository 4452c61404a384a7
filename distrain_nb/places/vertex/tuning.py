"""A study on Vertex AI: a `HyperparameterTuningJob` around the job of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.backends.tuning import ServiceStudy, ServiceTrial
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.vertex import client, request
from distrain_nb.places.vertex.forms.study import from_tuning_job
from distrain_nb.places.vertex.jobs import Jobs, readable
from distrain_nb.places.vertex.plan import VertexPlan, VertexSpec
from distrain_nb.places.vertex.service import CONSOLE, VertexService
from distrain_nb.tuning.spec import StudySpec, Value
from distrain_nb.types import Json, JsonObject
from distrain_nb.types import Value as Anything

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, Trial

    from distrain_nb.backends.tuning import TrialWord

_STATES: dict[str, TrialWord] = {
    "REQUESTED": "requested",
    "ACTIVE": "running",
    "STOPPING": "stopping",
    "SUCCEEDED": "succeeded",
    "INFEASIBLE": "failed",
}


@dataclass(frozen=True)
class VertexStudyPlan:
    """`trial` is the plan of a trial's job."""

    trial: VertexPlan
    study: StudySpec

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What keeps a job from being one of trials."""
        return tuple(self._findings())

    def spec(self) -> VertexSpec:
        """Return the facts that a service needs later."""
        of_trial = self.trial.spec()
        sent = fill_placeholders(
            self._around(self.trial.without_values), {request.RUN: of_trial.run}
        )
        return replace(of_trial, request=sent, study=True)

    def __str__(self) -> str:
        """Print the file for `gcloud ai hp-tuning-jobs create --config`, and its command line,
        which counts trials by options of its own."""
        config = self._around(self.trial.without_values)
        for said_elsewhere in ("displayName", "labels", "encryptionSpec"):
            config.pop(said_elsewhere, None)
        counts = (
            f"--max-trial-count={self.study.trials}",
            f"--parallel-trial-count={self.study.parallel}",
        )
        return self.trial.printed("hp-tuning-jobs", config, *counts)

    def _around(self, job: JsonObject) -> dict[str, Json]:
        return request.tuning_job(job, self.study)

    def _findings(self) -> Iterator[Finding]:
        if self.trial.pipeline:
            message = "a study is not sent as a training pipeline: leave out --pipeline"
            yield Finding("vertex.study-pipeline", Severity.ERROR, "pipeline", message)
        if self.trial.job.layout.retries:
            message = "Vertex AI starts the trials of a study again by itself: leave out --retries"
            yield Finding("vertex.study-retries", Severity.ERROR, "retries", message)
        name, _, run = self.trial.job.experiment.partition("/")
        if run:
            message = f"each trial is a run of its own: --experiment {name}, without /{run}"
            yield Finding("vertex.study-run", Severity.ERROR, "experiment", message)


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
        return ServiceStudy(answer.display_name, _seconds(answer.create_time), spec)

    def trials(self, job: str) -> Sequence[ServiceTrial]:
        """Return all trials so far. Raises DistrainError."""
        with client.plain_words("ask for the trials"):
            return [_read(trial) for trial in self._tuning_jobs.get(job).trials]

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


class TuningJobs(Jobs):
    """`HyperparameterTuningJob`s."""

    kind = "hyperparameter_tuning_job"

    def get(self, job: str) -> HyperparameterTuningJob:
        """Return a job with its trials. Raises what the client raises."""
        answer: HyperparameterTuningJob = self._get(job)
        return answer

    def custom_job(self, job: str) -> str:  # noqa: ARG002
        """Return nothing: each trial has one of its own."""
        return ""


def _read(trial: Trial) -> ServiceTrial:
    """Read a trial, with the values of its last measurement as long as there is no final one."""
    measured = trial.final_measurement
    if not measured.metrics and trial.measurements:
        measured = trial.measurements[-1]
    return ServiceTrial(
        number=int(trial.id),
        parameters={
            parameter.parameter_id: cast("Value", parameter.value) for parameter in trial.parameters
        },
        state=_STATES.get(trial.state.name, "requested"),
        job=trial.custom_job,
        goals={metric.metric_id: metric.value for metric in measured.metrics},
        steps=len(trial.measurements) or measured.step_count,
        why=readable(trial.infeasible_reason),
        begin=_seconds(trial.start_time),
        end=_seconds(trial.end_time),
    )


def _seconds(time: Anything) -> float:
    return float(time.timestamp()) if time else 0.0
