"""What can't be on Vertex AI: options that don't go together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from distrain_nb.cluster import choose
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import prebuilt
from distrain_nb.program.advice import avoids_nccl

if TYPE_CHECKING:
    from distrain_nb.places.vertex.options import VertexJob
    from distrain_nb.places.vertex.settings import Settings
    from distrain_nb.types import JsonObject, Unknown

CONTEXT = re.compile(r"[a-z0-9-]{4,128}")  # the identifier of one in Vertex ML Metadata
PERSISTENT_RESOURCE = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
LONGEST_NAME, MOST_VARIABLES = 128, 100


def launcher_of(job: VertexJob) -> str:
    """Return the chosen launcher, else that of the program's imports."""
    chosen = job.layout.launcher
    return chosen if chosen != "auto" else choose(job.program)[0]


def findings(job: VertexJob, settings: Settings, base: str) -> Iterator[Finding]:
    """Yield all that the rules of layouts don't look at."""
    yield from _of_launcher(job)
    yield from _of_tracking(job, settings)
    yield from _of_network(job, settings)
    image = job.layout.image or base
    if job.options.python_package and prebuilt(current(), image) is None:
        message = (
            f"{image} is not a prebuilt container that the catalog knows: it has to have pip, "
            "and Python as python3"
        )
        yield Finding("vertex.no-prebuilt", Severity.WARNING, "base", message)
    exchange = avoids_nccl(job.program.main) if job.layout.reducers else ""
    if exchange:
        message = (
            f"the program exchanges gradients by {exchange}: a Reduction Server serves NCCL alone, "
            "so leave --reducers out or take nccl"
        )
        yield Finding("vertex.reduction-backend", Severity.WARNING, "reducers", message)
    if job.layout.reducers and not job.layout.image:
        yield from _of_reduction(base)


def _of_network(job: VertexJob, settings: Settings) -> Iterator[Finding]:
    options = job.options
    if options.restart and (options.no_retries or job.layout.retries):
        other = "--no-retries" if options.no_retries else "--retries"
        message = f"{other} rules --restart out: the service would start nothing again"
        yield _error("retries", "restart", message)
    if options.ip_range and not settings.network:
        message = "--ip-range is a range of a VPC network: name it with --network"
        yield _error("ip-range", "ip_range", message)
    if options.network_attachment and settings.network:
        message = (
            "--network peers the job with a VPC, --network-attachment reaches one without that: "
            "leave one of the two out"
        )
        yield _error("two-networks", "network_attachment", message)


def _of_launcher(job: VertexJob) -> Iterator[Finding]:
    launcher = launcher_of(job)
    if launcher == "mpi":
        message = "launcher mpi needs mpirun in the image: --base has to be one that has it"
        yield Finding("vertex.mpirun", Severity.INFO, "base", message)
    if launcher == "parameter-server":
        message = "launcher parameter-server is SageMaker's; here it is tensorflow with --servers"
        yield _error("launcher", "launcher", message)


def _of_tracking(job: VertexJob, settings: Settings) -> Iterator[Finding]:
    for name, value in (("tensorboard", settings.tensorboard), ("experiment", job.experiment)):
        if value and not settings.service_account:
            message = f"--{name} needs a service account that writes to it: add --service-account"
            yield _error("no-service-account", name, message)
    if settings.tensorboard and job.experiment:
        message = "--tensorboard and --experiment don't go together: an experiment brings its own"
        yield _error("two-trackers", "experiment", message)
    name, slash, run = job.experiment.partition("/")
    contexts = (name, f"{name}-{run}") if slash else (name,)
    if name and not all(map(CONTEXT.fullmatch, contexts)):
        message = (
            f"invalid --experiment {job.experiment!r}: expected 4 to 128 lower case letters, "
            "digits and -: NAME, or NAME/RUN for a run of it that there is already"
        )
        yield _error("experiment-name", "experiment", message)


def limit_findings(request: JsonObject) -> Iterator[Finding]:
    """Yield the parts of a request whose size or form the API's reference rules out."""
    name = str(request["displayName"])
    if len(name) > LONGEST_NAME:
        message = f"--name has {len(name)} characters; at most {LONGEST_NAME} are allowed"
        yield _error("name", "name", message)
    spec = cast("dict[str, Unknown]", request["jobSpec"])
    resource = spec.get("persistentResourceId")
    if resource and not PERSISTENT_RESOURCE.fullmatch(resource):
        message = (
            f"invalid --persistent-resource {resource!r}: expected up to 63 lower case letters, "
            "digits and -, beginning with a letter and ending with none of -"
        )
        yield _error("persistent-resource", "persistent_resource", message)
    tasks = [task for pool in spec.get("workerPoolSpecs", ()) for task in pool.values()
             if isinstance(task, dict)]  # fmt: skip
    count = max((len(task.get("env", ())) for task in tasks), default=0)
    if count > MOST_VARIABLES:
        message = (
            f"there are {count} variables, with those of this tool: at most {MOST_VARIABLES} are "
            "allowed"
        )
        yield _error("env-count", "env", message)


def _of_reduction(base: str) -> Iterator[Finding]:
    row = prebuilt(current(), base)
    if row is None or not row.reduction_server_worker:
        yield Finding(
            "vertex.reduction-base",
            Severity.WARNING,
            "base",
            f"{base} is not known to support the Reduction Server: take a prebuilt GPU container "
            "of TensorFlow 2.3 or PyTorch 1.4 or later, or an image with google-reduction-server",
        )


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"vertex.{code}", Severity.ERROR, where, message)
