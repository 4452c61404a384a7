"""From a job to the request that Vertex AI gets, and what has to be done before it is sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.equipment import with_packages
from distrain_nb.backends.remote.names import run_name, short_name
from distrain_nb.backends.remote.needed_packages import packages_in_image
from distrain_nb.backends.remote.submission import Spec, fill_placeholders, retry_causes
from distrain_nb.backends.remote.variables import NOTE, plain_variables
from distrain_nb.backends.settings import setting_notes as notes_of
from distrain_nb.cluster import PER_GPU, process_findings, ranks_per_replica
from distrain_nb.findings import Finding
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.layout.files import data_yaml
from distrain_nb.layout.formats.form import as_json
from distrain_nb.layout.formats.images import IMAGE
from distrain_nb.layout.hardware import AMD64, hardware_of
from distrain_nb.places.vertex import options, request
from distrain_nb.places.vertex.containers import equipment_of, needed
from distrain_nb.places.vertex.forms.rest import REFUSED, has_empty_pool, post_command
from distrain_nb.places.vertex.options import VertexJob
from distrain_nb.places.vertex.settings import (
    Settings,
    missing_settings,
    settings_of,
    settings_with_origin,
)
from distrain_nb.places.vertex.validation import findings, launcher_of, limit_findings
from distrain_nb.secrets import HIDDEN
from distrain_nb.types import Json, JsonObject


@dataclass(frozen=True, kw_only=True)
class VertexSpec(Spec):
    """With the project, and whether the job is sent as a training pipeline; of the job of a trial
    with the study's job, and the trial's number."""

    project: str = ""
    pipeline: bool = False
    tuning_job: str = ""
    trial: str = ""


@dataclass(frozen=True)
class VertexPlan:
    """`request` is a `CustomJob` in JSON, sent as it is or as a training pipeline.

    `base` is the image that the program is put on.
    """

    job: VertexJob
    settings: Settings
    base: str
    ranks_per_replica: int
    gpus: int
    request: JsonObject = field(repr=False)
    findings: tuple[Finding, ...]
    platform: str = AMD64

    @property
    def pipeline(self) -> bool:
        """Whether it is sent as a training pipeline."""
        return bool(self.job.options.pipeline)

    @property
    def builds(self) -> bool:
        """Whether an image has to be built for it."""
        return Delivery.IMAGE in self.deliveries

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """How the code gets to the pools, each way once."""
        return request.deliveries(self.job)

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed for the program, in the image or by a prebuilt container."""
        program = self.job.program
        if Delivery.ARCHIVE in self.deliveries:
            return tuple(needed(program, self.base))
        row = prebuilt(current(), self.base)
        framework = row.framework if row else None
        return tuple(packages_in_image(program, framework)) if self.builds else ()

    def spec(self) -> VertexSpec:
        """Return the facts that a service needs later."""
        run = run_name(self.job)
        body = self.without_values
        sent = request.training_pipeline(body) if self.pipeline else body
        return VertexSpec(
            run=run,
            project=self.settings.project,
            region=self.settings.region,
            bucket=self.settings.bucket,
            repository=self.settings.repository,
            pipeline=self.pipeline,
            builder=self.job.options.builder,
            base=self.base,
            platform=self.platform,
            device=hardware_of(self.job.layout).device,
            requirements=self.job.program.requirements,
            required=self.job.program.required,
            uploads=self.job.uploads,
            deliveries=self.deliveries,
            request=fill_placeholders(sent, {request.RUN: run}),
            variables=self._values(),
            retries=self.job.layout.retries or 0,
            retried=retry_causes(self.job.layout),
        )

    def _values(self) -> dict[str, str]:
        return plain_variables(options.variables(self.job.options.env))

    @property
    def without_values(self) -> dict[str, Json]:
        """The request as it is shown and kept: without the values of variables."""
        hidden = dict.fromkeys(self._values(), HIDDEN)
        return request.with_variables(
            self.request, lambda env: {name: hidden.get(name, env[name]) for name in env}
        )

    def __str__(self) -> str:
        """Print the file for `gcloud ai custom-jobs create --config`, and its command line; with an
        empty pool, which gcloud refuses in a file, the request and the command that sends it."""
        if has_empty_pool(cast("JsonObject", self.without_values["jobSpec"])):
            region, project = self.settings.region or "LOCATION", self.settings.project or "PROJECT"
            command = post_command(region, project, "FILE").replace(" \\\n ", "")
            notes = (*self._notes(), f"{request.RUN} becomes the run's name.", REFUSED, command)
            body = fill_placeholders(self.without_values, {IMAGE: self.target()})
            return "".join(f"# {note}\n" for note in notes) + as_json(body)
        return self.printed("custom-jobs", self.without_values["jobSpec"])

    def printed(self, kind: str, config: Json, *more: str) -> str:
        """Return the file for `gcloud ai KIND create --config`, and its command line with `more`
        options."""
        head = [
            f"gcloud ai {kind} create --config=FILE",
            f"--project={shlex.quote(self.settings.project or 'PROJECT')}",
            f"--region={shlex.quote(self.settings.region or 'LOCATION')}",
            f"--display-name={shlex.quote(request.display_name(self.job))}",
            *more,
            f"--labels={','.join(f'{n}={v}' for n, v in request.labels(self.job).items())}",
        ]
        if self.job.options.kms_key:
            head.append(f"--kms-key={shlex.quote(self.job.options.kms_key)}")
        notes = [
            *self._notes(),
            f"{request.RUN} becomes the run's name.",
            *(" ".join(head),),
        ]
        spec = fill_placeholders(config, {IMAGE: self.target()})
        return "".join(f"# {note}\n" for note in notes) + data_yaml(spec)

    def target(self) -> str:
        """Return the reference of the image that is built for the job."""
        settings = self.settings
        repository = settings.repository.replace("//", f"/{settings.project or 'PROJECT'}/")
        if repository.startswith("-docker"):
            repository = f"LOCATION{repository}"
        return f"{repository}/{short_name(self.job.name)}:{request.RUN}"

    def _notes(self) -> Iterator[str]:
        yield from notes_of(settings_with_origin(self.job))
        if self.builds:
            yield f"The image is built on {self.base}."
        if self._values():
            yield NOTE
        if self.pipeline:
            yield "Sent as a training pipeline with this as its custom task."


def plan(job: VertexJob) -> VertexPlan:
    """Plan a job; the same job always has the same plan. Raises OptionError."""
    settings = settings_of(job)
    equipment = equipment_of(job, settings.region)
    job, base = with_packages(job, equipment), equipment.image
    gpus = hardware_of(job.layout).processes
    launcher = launcher_of(job)
    started = gpus if launcher in PER_GPU else 1
    ranks = ranks_per_replica(job.program, job.layout, started)
    asked = request.custom_job(job, settings, ranks, base)
    problems = (
        *missing_settings(settings),
        *equipment.findings,
        *findings(job, settings, base),
        *limit_findings(asked),
        *process_findings(job.program, job.layout, launcher, ranks, gpus),
    )
    return VertexPlan(job, settings, base, ranks, gpus, asked, problems, equipment.platform)
