"""A study on SageMaker, and the jobs of its trials, as services."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.remote import variables
from distrain_nb.backends.remote.service import Observed, Stored
from distrain_nb.backends.tuning import ServiceStudy, ServiceTrial
from distrain_nb.places.sagemaker.run_output import RunOutput
from distrain_nb.places.sagemaker.service import SageMakerService
from distrain_nb.places.sagemaker.tuning_jobs import HyperParameterTuningJobs
from distrain_nb.places.sagemaker.tuning_request import read
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files.folder import EVENTS_FOLDER
from distrain_nb.worker.metrics import goals

if TYPE_CHECKING:
    from distrain_nb.backends.remote.service import Cursor, LogEntry, OutputFolder
    from distrain_nb.backends.remote.submission import Spec

_URI = re.compile(r"s3://([^/]+)/(.*)")


class StudyService(SageMakerService):
    """A study on SageMaker, or on a rehearsal's stand-in. Its job is the tuning job."""

    def create(self, request: JsonObject) -> str:
        """Create the tuning job. Raises DistrainError, Unanswered."""
        return self._tuning.create(self._completed(request))

    def find(self, request: JsonObject) -> str:
        """Return the study's tuning job, empty if there is none. Raises DistrainError."""
        return self._tuning.find(self._completed(request))

    def _completed(self, request: JsonObject) -> dict[str, Json]:
        definition = read(request)["TrainingJobDefinition"]
        environment = variables.restored_variables(definition["Environment"], self.spec.variables)
        completed = {**definition, "Environment": environment}
        return {**request, "TrainingJobDefinition": cast("Json", completed)}

    def observe(self, job: str) -> Observed:
        """Return the present state of the tuning job. Raises DistrainError."""
        return self._tuning.observe(job)

    def study(self, job: str) -> ServiceStudy:
        """Return the spec of the tuning job.

        Raises DistrainError, or OptionError for several definitions.
        """
        return self._tuning.study(job)

    def trials(self, job: str) -> Sequence[ServiceTrial]:
        """Return all trials so far. Raises DistrainError."""
        return self._tuning.trials(job)

    def trial_spec(self, job: str, trial: ServiceTrial) -> Spec:  # noqa: ARG002
        """Return the spec that carries a trial's run: the request of its job, as far as it names
        log and output.

        The goal is in the trial's event files, not only in its log.
        """
        if not self.spec.run:
            return replace(self.spec, study=False, job=trial.job)
        definition = cast("dict[str, Json]", dict(read(self.spec.request)["TrainingJobDefinition"]))
        environment = cast("dict[str, str]", definition["Environment"])
        algorithm = cast("dict[str, list[dict[str, str]]]", definition["AlgorithmSpecification"])
        ours = json.loads(environment.get(goals.VARIABLE, "[]"))
        definitions = [
            one for one in algorithm.get("MetricDefinitions", ()) if one["Name"] not in ours
        ]
        request = {
            **definition,
            "AlgorithmSpecification": {**algorithm, "MetricDefinitions": definitions},
            "TrainingJobName": trial.job,
        }
        return replace(
            self.spec,
            study=False,
            job=trial.job,
            request=request,
            variables={},
        )

    def log(self, job: str, cursor: Cursor, *, last: bool) -> tuple[Sequence[LogEntry], Cursor]:  # noqa: ARG002
        """Return no lines: the trials have them."""
        return (), cursor

    def cancel(self, job: str) -> None:
        """Stop the tuning job and its trials. Raises DistrainError."""
        self._tuning.stop(job)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the tuning job and the study's folder in the console."""
        place = f"{self._console}/sagemaker/home?region={self.spec.region}#/hyper-tuning-jobs/{job}"
        if not self.spec.run:
            return {"job": place} if self._console else {}
        of_job = super().links(job)
        links_of_study = {name: of_job[name] for name in ("log", "checkpoints") if name in of_job}
        return {"job": place, **links_of_study} if links_of_study else {}

    @cached_property
    def _tuning(self) -> HyperParameterTuningJobs:
        return HyperParameterTuningJobs(self._client("sagemaker"))


class TrialService(SageMakerService):
    """The training job of a trial."""

    @cached_property
    def output(self) -> OutputFolder:
        """The objects of this trial below the study's folder."""
        config = cast("dict[str, str]", self.spec.request["CheckpointConfig"])
        place = _URI.fullmatch(self._filled(config["S3Uri"], {}))
        bucket, folder = (place[1], place[2]) if place else (self._bucket, "")
        results = RunOutput(self._s3, self._bucket, self._folder)
        return TrialOutput(results, RunOutput(self._s3, bucket, folder), self.spec.job)

    def links(self, job: str) -> Mapping[str, str]:
        """Return the job, its log and its model in the console."""
        of_job = super().links(job)
        return {name: of_job[name] for name in ("job", "log", "model") if name in of_job}

    @property
    def _folder(self) -> str:
        return f"{super()._folder}{self.spec.job}/"


@dataclass(frozen=True)
class TrialOutput:
    """A trial's `results`, and its event files among the `checkpoints` of all trials.

    The event files are in a folder that is named like the trial's `job`. If the service keeps the
    checkpoints of trials apart, that folder is inside another one of the same name.
    """

    results: RunOutput
    checkpoints: RunOutput
    job: str
    _places: dict[str, str] = field(default_factory=dict)

    def objects(self, below: str) -> Sequence[Stored]:
        """Return the objects whose names start with `below`. Raises DistrainError."""
        if not below.startswith(f"{EVENTS_FOLDER}/"):
            return self.results.objects(below)
        stored = []
        for folder in (f"{self.job}/", f"{self.job}/{self.job}/"):
            for entry in self.checkpoints.objects(folder + below):
                name = entry.name.removeprefix(folder)
                self._places[name] = entry.name
                stored.append(Stored(name, entry.size))
        return stored

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` (exclusive). Raises DistrainError."""
        if name in self._places:
            return self.checkpoints.read(self._places[name], start, end)
        return self.results.read(name, start, end)
