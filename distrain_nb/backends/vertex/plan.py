"""From a job to the request that Vertex AI gets, and what has to be done before it is sent."""

from __future__ import annotations

import re
import secrets
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.backends.vertex import request
from distrain_nb.backends.vertex.base import base_of
from distrain_nb.backends.vertex.place import missing, place_of
from distrain_nb.cluster import choose
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout import Role
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.layout.exchange.vertex import IMAGE
from distrain_nb.layout.yamls import data_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.base import Job
    from distrain_nb.backends.vertex.place import Place

# Names of runs stand in labels (63 characters) and tags, in lower case.
_LONGEST_NAME = 40
_TRAINING = (Role.PRIMARY, Role.WORKERS)


@dataclass(frozen=True)
class VertexPlan:
    """`request` is a `CustomJob` in JSON, sent as it is or as a training pipeline.

    `base` is the image that the program is put on.
    """

    job: Job
    place: Place
    base: str
    ranks_per_replica: int
    request: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def pipeline(self) -> bool:
        """Whether it is sent as a training pipeline."""
        return bool(self.job.backend_options.get("pipeline"))

    @property
    def builds(self) -> bool:
        """Whether an image has to be built for it."""
        return IMAGE in str(self.request)

    def told(self) -> dict[str, Any]:
        """All that a service needs later, as JSON values; every call is about another run."""
        run = f"{_short(self.job.name or 'run')}-{secrets.token_hex(4)}"
        sent = request.training_pipeline(self.request) if self.pipeline else self.request
        return {
            "run": run,
            "project": self.place.project,
            "region": self.place.region,
            "bucket": self.place.bucket,
            "repository": self.place.repository,
            "pipeline": self.pipeline,
            "builder": self.job.builder,
            "base": self.base,
            "requirements": list(self.job.program.requirements),
            "request": request.with_run(sent, run),
        }

    def __str__(self) -> str:
        """What `gcloud ai custom-jobs create --config` takes, and its command line."""
        head = [
            "gcloud ai custom-jobs create --config=FILE",
            f"--project={self.place.project or 'PROJECT'}",
            f"--region={self.place.region or 'LOCATION'}",
            f"--display-name={shlex.quote(self.request['displayName'])}",
            f"--labels={','.join(f'{n}={v}' for n, v in self.request['labels'].items())}",
        ]
        notes = [
            *self._notes(),
            f"{request.RUN} becomes the run's name.",
            *(" ".join(head),),
        ]
        spec = request.with_image(self.request["jobSpec"], self._target())
        return "".join(f"# {note}\n" for note in notes) + data_yaml(spec)

    def _target(self) -> str:
        return f"{self.place.repository}/{_short(self.job.name or 'run')}:{request.RUN}"

    def _notes(self) -> Iterator[str]:
        if self.builds:
            yield f"The image is built on {self.base}."
        if self.pipeline:
            yield "Sent as a training pipeline with this as its custom task."


def plan(job: Job) -> VertexPlan:
    """Pure but for the environment and gcloud's files, which say where. Raises OptionError."""
    place, base = place_of(job), base_of(job)
    ranks = _ranks(job)
    found = (*missing(place), *_findings(job, place, base))
    return VertexPlan(job, place, base, ranks, request.custom_job(job, place, ranks, base), found)


def _launcher(job: Job) -> str:
    chosen = job.layout.launcher
    return chosen if chosen != "auto" else choose(job.program.imports)[0]


def _ranks(job: Job) -> int:
    """As chosen, else one for each GPU of the primary where the launcher starts so many."""
    layout = job.layout
    if layout.ranks_per_replica:
        return layout.ranks_per_replica
    primary = layout.primary
    if primary is None or primary.topology or _launcher(job) not in ("torchrun", "mpi"):
        return 1
    return max(1, primary.accelerator_count)


def _findings(job: Job, place: Place, base: str) -> Iterator[Finding]:
    layout, options = job.layout, job.backend_options
    launcher = _launcher(job)
    if launcher == "mpi" and sum(layout.replicas(role) for role in _TRAINING) > 1:
        yield _error(
            "vertex.mpi-replicas",
            "launcher",
            "launcher mpi starts the ranks of one replica here; leave --workers out, or write "
            "--launcher torchrun",
        )
    if launcher == "parameter-server":
        message = "launcher parameter-server is SageMaker's; here it is tensorflow with --servers"
        yield _error("vertex.launcher", "launcher", message)
    for name, value in (("tensorboard", place.tensorboard), ("experiment", _experiment(job))):
        if value and not place.service_account:
            message = f"--{name} needs a service account that writes to it: add --service-account"
            yield _error("vertex.no-service-account", name, message)
    if options.get("python_package") and prebuilt(current(), layout.image or base) is None:
        yield Finding(
            "vertex.no-prebuilt",
            Severity.WARNING,
            "base",
            f"{layout.image or base} is not a prebuilt container that the catalog knows: it has to "
            "have pip, and Python as python3",
        )
    if layout.reducers and not layout.image:
        yield from _reduction(base)


def _reduction(base: str) -> Iterator[Finding]:
    row = prebuilt(current(), base)
    if row is None or not row.reduction_server_worker:
        yield Finding(
            "vertex.reduction-base",
            Severity.WARNING,
            "base",
            f"{base} is not known to support the Reduction Server: take a prebuilt GPU container "
            "of TensorFlow 2.3 or PyTorch 1.4 or later, or an image with google-reduction-server",
        )


def _experiment(job: Job) -> str:
    return str(job.backend_options.get("experiment") or "")


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(code, Severity.ERROR, where, message)


def _short(name: str) -> str:
    """A name as labels and images may have it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "run"
