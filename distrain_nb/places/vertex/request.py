"""The request: a `CustomJob`, or a `TrainingPipeline` around one, as JSON in the API's spelling."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from distrain_nb.backends.remote import tracker
from distrain_nb.backends.remote.cloud import CODE
from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.variables import plain_variables, secrets
from distrain_nb.cluster import time_limit
from distrain_nb.layout import Pool, Role
from distrain_nb.layout.formats.images import IMAGE, image_of
from distrain_nb.layout.formats.mappings import present
from distrain_nb.places.vertex import options
from distrain_nb.places.vertex.forms import study as studies
from distrain_nb.places.vertex.forms.specs import machine_spec, scheduling, worker_pool_specs
from distrain_nb.places.vertex.options import VertexJob
from distrain_nb.places.vertex.validation import launcher_of
from distrain_nb.tuning.spec import StudySpec
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.metrics.goals import VARIABLE as GOALS
from distrain_nb.worker.supervisor.retries import variables as retried_variables

if TYPE_CHECKING:
    from distrain_nb.places.vertex.settings import Settings

# What only the moment of submission can tell: the run's own name in the cloud.
RUN = "${RUN}"
RUN_LABEL = "distrain_run"

# Below the run's folder in the bucket: the program as a source distribution.
PACKAGE = "package"
PACKAGE_MODULE = "distrain_program.task"

# NCCL finds the Reduction Server's plugin by itself. Only its log shows whether it did.
SHOW_TRANSPORT = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"


def custom_job(job: VertexJob, settings: Settings, ranks: int, base: str) -> dict[str, Json]:
    """Return the `CustomJob`, with `RUN` where the run's name belongs.

    Where an image has yet to be built, its name is `IMAGE`. `base` is the container that runs a
    source distribution.
    """
    return {
        "displayName": display_name(job),
        "labels": labels(job),
        "jobSpec": _job_spec(job, settings, ranks, base),
        **present(encryptionSpec=present(kmsKeyName=job.options.kms_key or None)),
    }


def display_name(job: VertexJob) -> str:
    """Return the job's name in the console."""
    return job.name or "distrain"


def labels(job: VertexJob) -> dict[str, str]:
    """Return the user's, and the one by which the run's job is found."""
    return {**options.labels(job.options.label), RUN_LABEL: RUN}


def training_pipeline(job: JsonObject) -> dict[str, Json]:
    """Return a custom job as a pipeline that has no other step."""
    return {
        "displayName": job["displayName"],
        "labels": job["labels"],
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": job["jobSpec"],
        **present(encryptionSpec=job.get("encryptionSpec")),
    }


def tuning_job(job: JsonObject, spec: StudySpec) -> dict[str, Json]:
    """Return a custom job as that of the trials of a `HyperparameterTuningJob`, whose workers are
    told which metrics are its goals. Raises OptionError."""
    goals = {GOALS: json.dumps([goal.metric for goal in spec.goals])}
    trial = cast("JsonObject", with_variables(job, lambda env: {**env, **goals})["jobSpec"])
    return {
        "displayName": job["displayName"],
        "labels": job["labels"],
        **studies.tuning_job(spec),
        "trialJobSpec": trial,
        **present(encryptionSpec=job.get("encryptionSpec")),
    }


def deliveries(job: VertexJob) -> tuple[Delivery, ...]:
    """Return how the code gets to the pools, each way once."""
    items = (_delivery(job, role, pool) for role, pool in job.layout.pools())
    return tuple(dict.fromkeys(filter(None, items)))


def output_folder(settings: Settings) -> str:
    """Return where all that a run leaves behind is kept, as `gs://…`."""
    return f"gs://{settings.bucket or 'BUCKET'}/distrain/{RUN}"


def environment(job: VertexJob, settings: Settings, ranks: int) -> dict[str, str]:
    """Return the variables of our worker, with those that the user adds."""
    ours = {
        "DISTRAIN_RUN": RUN,
        "DISTRAIN_RANKS": str(ranks),
        "DISTRAIN_OUTPUT": output_folder(settings),
    }
    if job.results:
        ours["DISTRAIN_RESULTS"] = ",".join(job.results)
    if launcher_of(job) == "mpi":
        ours["DISTRAIN_LAUNCHER"] = "mpi"
        if job.layout.mpi_options:
            ours["DISTRAIN_MPI_OPTIONS"] = job.layout.mpi_options
    if job.layout.reducers:
        ours |= SHOW_TRANSPORT
        if launcher_of(job) == "tensorflow":  # a rehearsal has no reducers for it
            ours["DISTRAIN_LAUNCHER"] = "tensorflow"
    if job.layout.retries:
        ours |= retried_variables(1, job.layout.retries)
    ours |= {**time_limit(job.layout), **tracker.variables(job)}
    users = options.variables(job.options.env)
    stored = secrets(users, lambda name, text: options.secret(name, text, settings.project))
    return {**ours, **plain_variables(users), **stored}


def with_variables(
    request: JsonObject, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> dict[str, Json]:
    """Return the request with the variables of every pool as `change` gives them."""

    def within(key: str, value: Json) -> Json:
        if key == "env":
            listed = cast("list[dict[str, str]]", value)
            return _listed(change({item["name"]: item["value"] for item in listed}))
        if isinstance(value, dict):
            return with_variables(value, change)
        return [within("", item) for item in value] if isinstance(value, list) else value

    return {key: within(key, value) for key, value in request.items()}


def _job_spec(job: VertexJob, settings: Settings, ranks: int, base: str) -> dict[str, Json]:
    options = job.options
    again = present(
        restartJobOnWorkerRestart=options.restart or None,
        # One of the two counts the attempts.
        disableRetries=bool(options.no_retries or job.layout.retries) or None,
    )
    specs = worker_pool_specs(job.layout)
    variables = environment(job, settings, ranks)
    for role, pool in job.layout.pools():
        spec = specs[role.position]
        del spec["containerSpec"]
        spec |= _container(job, role, pool, variables, base) | _on_machines(job, role, pool)
    return present(
        persistentResourceId=options.persistent_resource or None,
        workerPoolSpecs=specs,
        scheduling=scheduling(job.layout) | again,
        serviceAccount=settings.service_account or None,
        network=settings.network or None,
        reservedIpRanges=list(options.ip_range),
        pscInterfaceConfig=present(networkAttachment=options.network_attachment or None),
        baseOutputDirectory={"outputUriPrefix": output_folder(settings)},
        tensorboard=_resource(settings, "tensorboards", settings.tensorboard),
        enableWebAccess=options.web_access or None,
        **_experiment(job, settings),
    )


def _container(
    job: VertexJob, role: Role, pool: Pool, variables: Mapping[str, str], base: str
) -> dict[str, Json]:
    """Return the container that a pool runs."""
    image, delivery = image_of(job.layout, role, pool), _delivery(job, role, pool)
    if delivery is None:
        return {"containerSpec": {"imageUri": image}}
    if delivery is Delivery.ARCHIVE:
        return {"pythonPackageSpec": _python_package(variables, base, job)}
    if delivery is Delivery.IMAGE:
        return {"containerSpec": {"imageUri": IMAGE, "env": _listed(variables)}}
    return {"containerSpec": _own_container(image, variables)}


def _delivery(job: VertexJob, role: Role, pool: Pool) -> Delivery | None:
    """Return how a pool gets the code; the Reduction Server brings all that it needs."""
    if role is Role.REDUCERS:
        return None
    if job.options.python_package:
        return Delivery.ARCHIVE
    return Delivery.IMAGE if image_of(job.layout, role, pool) == IMAGE else Delivery.FILES


def _python_package(variables: Mapping[str, str], base: str, job: VertexJob) -> dict[str, Json]:
    return {
        "executorImageUri": job.layout.image or base,
        "packageUris": [f"{variables['DISTRAIN_OUTPUT']}/{PACKAGE}/distrain_program-0.tar.gz"],
        "pythonModule": PACKAGE_MODULE,
        "env": _listed(variables),
    }


def _own_container(image: str, variables: Mapping[str, str]) -> dict[str, Json]:
    """Return a container that knows nothing of us: code comes from the bucket, which is mounted."""
    code = f"/gcs/{variables['DISTRAIN_OUTPUT'].removeprefix('gs://')}/{CODE}"
    worker = shlex.quote(f"{code}/worker")
    ours = {"PYTHONUNBUFFERED": "1", "DISTRAIN_PROGRAM": f"{code}/program"}
    start = f'PYTHONPATH={worker}:"$PYTHONPATH" exec python3 -m distrain_nb.worker "$@"'
    return {
        "imageUri": image,
        "command": ["sh", "-c", start, "sh"],
        "env": _listed({**ours, **variables}),
    }


def _on_machines(job: VertexJob, role: Role, pool: Pool) -> dict[str, Json]:
    """Mounts, and for those that train the reservation that machines are taken from."""
    job_options = job.options
    trains = role in (Role.PRIMARY, Role.WORKERS)
    affinity = options.reservation(job_options.reservation) if trains else None
    return present(
        machineSpec={**machine_spec(pool), **present(reservationAffinity=affinity)},
        nfsMounts=options.nfs_mounts(job_options.nfs),
        lustreMounts=options.lustre_mounts(job_options.lustre),
    )


def _experiment(job: VertexJob, settings: Settings) -> dict[str, Json]:
    """Return the experiment that the job is filed under; Vertex AI adds a run to it if none is
    named."""
    name, _, run = job.experiment.partition("/")
    contexts = f"{settings.parent}/metadataStores/default/contexts"
    return present(
        experiment=f"{contexts}/{name}" if name else None,
        experimentRun=f"{contexts}/{name}-{run}" if run else None,
    )


def _resource(settings: Settings, collection: str, name: str) -> str | None:
    """Return a resource's full name, from that or from its number."""
    if not name:
        return None
    return name if "/" in name else f"{settings.parent}/{collection}/{name}"


def _listed(variables: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]
