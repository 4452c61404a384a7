"""The plan of a study on Vertex AI: a `HyperparameterTuningJob` around the job of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from distrain_nb.backends.remote.submission import fill_placeholders
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.vertex import request
from distrain_nb.places.vertex.plan import VertexPlan, VertexSpec
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.types import Json, JsonObject


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
