"""From a job to the request that SageMaker gets, and what has to be done before it is sent."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.equipment import with_packages
from distrain_nb.backends.remote.names import run_name, short_name
from distrain_nb.backends.remote.needed_packages import packages_in_image
from distrain_nb.backends.remote.submission import Spec, fill_placeholders
from distrain_nb.backends.remote.variables import NOTE, plain_variables, variables_of
from distrain_nb.backends.settings import setting_notes, with_settings
from distrain_nb.cluster import PER_GPU, choose, process_findings, ranks_per_replica
from distrain_nb.findings import Finding
from distrain_nb.image.requirement_names import requirement_name
from distrain_nb.layout import Layout
from distrain_nb.layout.hardware import AMD64, hardware_of
from distrain_nb.layout.pool import Alternative
from distrain_nb.places.sagemaker.containers import (
    equipment_of,
    framework_in,
    framework_of,
    python_of,
)
from distrain_nb.places.sagemaker.forms.request import groups, hosts
from distrain_nb.places.sagemaker.limits import limit_findings
from distrain_nb.places.sagemaker.names import ACCOUNT, IMAGE, REGION, RUN
from distrain_nb.places.sagemaker.options import SageMakerJob
from distrain_nb.places.sagemaker.request import Start, read, request_of
from distrain_nb.places.sagemaker.settings import (
    Settings,
    applicable_settings,
    problems,
    settings_of,
    settings_with_origin,
)
from distrain_nb.places.sagemaker.validation import findings
from distrain_nb.secrets import HIDDEN
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.settings import Settled


@dataclass(frozen=True, kw_only=True)
class SageMakerSpec(Spec):
    """With the framework of the container that an archive is for, None for none, and the folder of
    all runs in the bucket."""

    framework: str | None = None
    below: str = "distrain"


@dataclass(frozen=True)
class SageMakerPlan:
    """`request` is a `CreateTrainingJob` in JSON, with stand-ins for the run's name, the account
    and the image. `base` is the image that the program is put on, or the container that runs it.
    """

    job: SageMakerJob
    settings: Settings
    settled: Settled
    start: Start
    base: str
    request: JsonObject = field(repr=False)
    findings: tuple[Finding, ...]
    platform: str = AMD64

    @property
    def ranks_per_replica(self) -> int:
        """The most ranks that a host may have."""
        return max(ranks for _, ranks in self.start.ranks_of)

    @property
    def gpus(self) -> int:
        return hardware_of(self.job.layout).processes

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed for the program, in the image or by AWS's container."""
        from distrain_nb.places.sagemaker.delivery import needed

        program = replace(self.job.program, requirements=self._requirements())
        if self.start.delivery is Delivery.ARCHIVE:
            framework = self.job.layout.framework_name or framework_of(self.job)
            return tuple(needed(program, framework))
        framework = framework_in(self.base)
        image = self.start.delivery is Delivery.IMAGE
        return tuple(packages_in_image(program, framework)) if image else ()

    def spec(self) -> SageMakerSpec:
        """Return the facts that a service needs later."""
        run = run_name(self.job)
        return SageMakerSpec(
            run=run,
            region=self.settings.region,
            bucket=self.settings.bucket,
            repository=self.settings.repository,
            builder=self.job.options.builder,
            base=self.base,
            platform=self.platform,
            device=hardware_of(self.job.layout).device,
            below=self.settings.below,
            framework=self.job.layout.framework_name or framework_of(self.job),
            requirements=self._requirements(),
            required=self.job.program.required,
            uploads=self.job.uploads,
            deliveries=(self.start.delivery,),
            request=fill_placeholders(self.stored_request(), {RUN: run}),
            variables=self._values(),
        )

    def _requirements(self) -> tuple[str, ...]:
        """Return the packages, with the one that fetches secrets if the job names some."""
        program = self.job.program
        needed = program.requirements
        fetches = SECRETS_VARIABLE in read(self.request)["Environment"]
        has = any(requirement_name(item) == "boto3" for item in (*needed, *program.required))
        return (*needed, "boto3") if fetches and not has else needed

    def _values(self) -> dict[str, str]:
        return plain_variables(variables_of(self.job.options.env))

    def stored_request(self) -> dict[str, Json]:
        """Return the request as it is shown and kept: without the values of variables."""
        hidden = dict.fromkeys(self._values(), HIDDEN)
        return {**self.request, "Environment": {**read(self.request)["Environment"], **hidden}}

    def __str__(self) -> str:
        """Return the request in the command that sends it, for a shell of its own."""
        return self.command("create-training-job", self.stored_request(), short_name(self.job.name))

    def command(self, operation: str, request: JsonObject, name: str) -> str:
        """Return a command for a shell that sends a request with this job's image; what it makes
        has that name, and the time behind it."""
        body = json.dumps(fill_placeholders(request, {IMAGE: self.target()}), indent=2)
        region = shlex.quote(self.settings.region or REGION)
        lines = [*(f"# {note}" for note in self._notes()), f"RUN={name}-$(date +%s)"]
        if ACCOUNT in body:
            lines.append("ACCOUNT=$(aws sts get-caller-identity --query Account --output text)")
        lines += [
            f"aws sagemaker {operation} --region {region} \\",
            '--cli-input-json "$(cat <<END',
            _in_shell(body),
            "END",
            ')"',
        ]
        return "\n".join(lines) + "\n"

    def target(self) -> str:
        """Return the reference of the image that is built for the job."""
        return f"{self.settings.repository or 'REPOSITORY'}:{RUN}"

    def _notes(self) -> Iterator[str]:
        yield from setting_notes(self.settled)
        if self._values():
            yield NOTE
        if self.start.delivery is Delivery.IMAGE:
            yield f"The image is built on {self.base} before the job is sent."
            if python_of(self.base):
                yield "The first one copies that container, some GB, to your own registry."
        elif self.start.delivery is Delivery.FILES:
            yield "The code is put into the bucket before the job is sent, for the last channel."
        else:
            yield "The code is put into the bucket before the job is sent, as an archive."


def plan(job: SageMakerJob) -> SageMakerPlan:
    """Plan a job; the same job always has the same plan. Raises OptionError."""
    settings, origins = settings_of(job), settings_with_origin(job)
    job = replace(
        job,
        layout=replace(_with_primary(job.layout), launcher=_launcher(job)),
        options=with_settings(job.options, applicable_settings(job)),
    )
    equipment = equipment_of(job, settings.region)
    job, base = with_packages(job, equipment), equipment.image
    start = _start(job, base)
    request = request_of(job, settings, start)
    every = (
        *problems(settings, rehearsed=job.options.rehearsed),
        *equipment.findings,
        *findings(job, start, base),
        *_about_processes(job, start),
        *limit_findings(request),
    )
    return SageMakerPlan(job, settings, origins, start, base, request, every, equipment.platform)


def _about_processes(job: SageMakerJob, start: Start) -> Iterator[Finding]:
    """Yield what is wrong with the ranks of the first of the variants that has something wrong."""
    numbered = zip(job.layout.variants(), start.ranks_of, strict=True)
    findings = (
        tuple(
            process_findings(
                job.program, variant, start.launcher, ranks, hardware_of(variant).processes
            )
        )
        for variant, (_, ranks) in numbered
    )
    yield from next(filter(None, findings), ())


def _with_primary(layout: Layout) -> Layout:
    """Make the first host the primary, as the worker and the log have it."""
    pool = hosts(layout)
    if not pool.replicas or groups(layout):
        return layout
    types = [Alternative(alternative.machine) for alternative in pool.alternatives]
    fewer = (_one_fewer(alternative) for alternative in pool.alternatives)
    workers = replace(pool, replicas=pool.replicas - 1, alternatives=tuple(fewer))
    has_workers = any(workers.taking(number).replicas for number in range(len(pool.machines)))
    return replace(
        layout,
        primary=replace(pool, replicas=1, alternatives=tuple(types)),
        workers=workers if has_workers else None,
    )


def _one_fewer(alternative: Alternative) -> Alternative:
    count = alternative.replicas
    return replace(alternative, replicas=None if count is None else count - 1)


def _launcher(job: SageMakerJob) -> str:
    """Return the chosen launcher, else the program's; a distribution without one starts itself."""
    chosen = job.layout.launcher
    if chosen != "auto":
        return chosen
    return "python" if job.layout.distribution else choose(job.program)[0]


def _start(job: SageMakerJob, base: str) -> Start:
    image = hosts(job.layout).image or job.layout.image
    if job.options.python_package:
        return Start(Delivery.ARCHIVE, image or base, job.layout.launcher, _ranks(job))
    delivery = Delivery.FILES if image else Delivery.IMAGE
    return Start(delivery, image or IMAGE, job.layout.launcher, _ranks(job))


def _ranks(job: SageMakerJob) -> tuple[tuple[str, int], ...]:
    """Return the ranks of a host of each type that the job may get, the first choice first."""
    layout = job.layout
    several = layout.launcher in PER_GPU or layout.distribution

    def ranks(variant: Layout) -> int:
        gpus = hardware_of(variant).processes if several else 1
        return ranks_per_replica(job.program, variant, gpus)

    return tuple((hosts(one).machine or "", ranks(one)) for one in layout.variants())


def _in_shell(text: str) -> str:
    """Return the text as a here-document of a shell needs it, with our stand-ins as its
    variables."""
    quoted = re.sub(r"([\\`$])", r"\\\1", text)
    for name in (RUN, ACCOUNT):
        quoted = quoted.replace("\\" + name, name)
    return quoted
