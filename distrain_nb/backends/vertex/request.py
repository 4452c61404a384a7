"""The request: a `CustomJob`, or a `TrainingPipeline` around one, as JSON in the API's spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.backends.remote.cloud import CODE
from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.variables import plain, secrets
from distrain_nb.backends.vertex import options
from distrain_nb.backends.vertex.validation import launcher_of
from distrain_nb.layout import Role
from distrain_nb.layout.formats.pieces import present
from distrain_nb.layout.formats.vertex import IMAGE, custom_job_spec, image_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from distrain_nb.backends.vertex.options import VertexJob
    from distrain_nb.backends.vertex.settings import Settings

# What only the moment of submission can tell: the run's own name in the cloud.
RUN = "${RUN}"
RUN_LABEL = "distrain_run"

# Below the run's folder in the bucket: the program as a source distribution.
PACKAGE = "package"
PACKAGE_MODULE = "distrain_program.task"

# NCCL finds the Reduction Server's plugin by itself; that it has is said nowhere but in its log.
SHOW_TRANSPORT = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"


def custom_job(job: VertexJob, settings: Settings, ranks: int, base: str) -> dict[str, Any]:
    """The `CustomJob`, with `RUN` where the run's name belongs.

    Where an image has yet to be built, its name is `IMAGE`. `base` is the container that runs a
    source distribution.
    """
    labels = options.labels(job.options.label)
    return {
        "displayName": job.name or "distrain",
        "labels": {**labels, RUN_LABEL: RUN},
        "jobSpec": _job_spec(job, settings, ranks, base),
        **present(encryptionSpec=present(kmsKeyName=job.options.kms_key or None)),
    }


def training_pipeline(job: Mapping[str, Any]) -> dict[str, Any]:
    """A custom job as a pipeline that has no other step."""
    return {
        "displayName": job["displayName"],
        "labels": job["labels"],
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": job["jobSpec"],
        **present(encryptionSpec=job.get("encryptionSpec")),
    }


def deliveries(job: VertexJob) -> tuple[Delivery, ...]:
    """How the code gets to the pools, each way once."""
    return tuple(dict.fromkeys(each for _, _, each in _pools(job) if each))


def output_folder(settings: Settings) -> str:
    """Where all that a run leaves behind is kept, as `gs://…`."""
    return f"gs://{settings.bucket or 'BUCKET'}/distrain/{RUN}"


def environment(job: VertexJob, settings: Settings, ranks: int) -> dict[str, str]:
    """What our worker gets, and what the user adds."""
    own = {
        "DISTRAIN_RUN": RUN,
        "DISTRAIN_RANKS": str(ranks),
        "DISTRAIN_OUTPUT": output_folder(settings),
    }
    if job.results:
        own["DISTRAIN_RESULTS"] = ",".join(job.results)
    if launcher_of(job) == "mpi":
        own["DISTRAIN_LAUNCHER"] = "mpi"
        if job.layout.mpi_options:
            own["DISTRAIN_MPI_OPTIONS"] = job.layout.mpi_options
    if job.layout.reducers:
        own |= SHOW_TRANSPORT
    given = options.variables(job.options.env)
    stored = secrets(given, lambda name, text: options.secret(name, text, settings.project))
    return {**own, **plain(given), **stored}


def with_run(request: Any, run: str) -> Any:
    """The request with the run's name in every place of `RUN`."""
    if isinstance(request, dict):
        return {key: with_run(value, run) for key, value in request.items()}
    if isinstance(request, list):
        return [with_run(value, run) for value in request]
    return request.replace(RUN, run) if isinstance(request, str) else request


def with_variables(request: Any, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Any:
    """The request with the variables of every pool as `change` gives them."""
    if isinstance(request, dict):
        return {
            key: _listed(change({each["name"]: each["value"] for each in value}))
            if key == "env"
            else with_variables(value, change)
            for key, value in request.items()
        }
    if isinstance(request, list):
        return [with_variables(value, change) for value in request]
    return request


def with_image(request: Any, image: str) -> Any:
    """The request with the image that has been built in every place of `IMAGE`."""
    if isinstance(request, dict):
        return {key: with_image(value, image) for key, value in request.items()}
    if isinstance(request, list):
        return [with_image(value, image) for value in request]
    return image if request == IMAGE else request


def _job_spec(job: VertexJob, settings: Settings, ranks: int, base: str) -> dict[str, Any]:
    given = job.options
    spec = custom_job_spec(job.layout)
    pools = spec["workerPoolSpecs"]
    scheduling = spec.get("scheduling", {})
    if given.restart:
        scheduling["restartJobOnWorkerRestart"] = True
    variables = environment(job, settings, ranks)
    for position, container in _containers(job, variables, base):
        del pools[position]["containerSpec"]
        pools[position] |= container | _on_machines(job, position, pools[position])
    return present(
        persistentResourceId=given.persistent_resource or None,
        workerPoolSpecs=pools,
        scheduling=scheduling,
        serviceAccount=settings.service_account or None,
        network=settings.network or None,
        baseOutputDirectory={"outputUriPrefix": output_folder(settings)},
        tensorboard=_resource(settings, "tensorboards", settings.tensorboard),
        enableWebAccess=given.web_access or None,
        **_experiment(job, settings),
    )


def _containers(
    job: VertexJob, variables: Mapping[str, str], base: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """What each pool runs. The Reduction Server brings all that it needs."""
    for role, image, delivery in _pools(job):
        if delivery is None:
            yield role.position, {"containerSpec": {"imageUri": image}}
        elif delivery is Delivery.ARCHIVE:
            yield role.position, {"pythonPackageSpec": _python_package(variables, base, job)}
        elif delivery is Delivery.IMAGE:
            yield role.position, {"containerSpec": {"imageUri": IMAGE, "env": _listed(variables)}}
        else:
            yield role.position, {"containerSpec": _own_container(image, variables)}


def _pools(job: VertexJob) -> Iterator[tuple[Role, str, Delivery | None]]:
    """Each pool with its image and with how it gets the code, if it gets any."""
    for role, pool in job.layout.pools():
        image, delivery = image_of(job.layout, role, pool), Delivery.FILES
        if role is Role.REDUCERS:
            yield role, image, None
            continue
        if job.options.python_package:
            delivery = Delivery.ARCHIVE
        elif image == IMAGE:
            delivery = Delivery.IMAGE
        yield role, image, delivery


def _python_package(variables: Mapping[str, str], base: str, job: VertexJob) -> dict[str, Any]:
    return {
        "executorImageUri": job.layout.image or base,
        "packageUris": [f"{variables['DISTRAIN_OUTPUT']}/{PACKAGE}/distrain_program-0.tar.gz"],
        "pythonModule": PACKAGE_MODULE,
        "env": _listed(variables),
    }


def _own_container(image: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """A container that knows nothing of us: code comes from the bucket, which is mounted."""
    code = f"/gcs/{variables['DISTRAIN_OUTPUT'].removeprefix('gs://')}/{CODE}"
    own = {"PYTHONUNBUFFERED": "1", "DISTRAIN_PROGRAM": f"{code}/program"}
    start = f'PYTHONPATH="{code}/worker:$PYTHONPATH" exec python3 -m distrain_nb.worker'
    return {
        "imageUri": image,
        "command": ["sh", "-c", start],
        "env": _listed({**own, **variables}),
    }


def _on_machines(job: VertexJob, position: int, pool: dict[str, Any]) -> dict[str, Any]:
    """Mounts, and for those that train the reservation that machines are taken from."""
    given = job.options
    trains = position in (Role.PRIMARY.position, Role.WORKERS.position)
    affinity = options.reservation(given.reservation) if trains else None
    return present(
        machineSpec={**pool["machineSpec"], **present(reservationAffinity=affinity)},
        nfsMounts=options.nfs_mounts(given.nfs),
        lustreMounts=options.lustre_mounts(given.lustre),
    )


def _experiment(job: VertexJob, settings: Settings) -> dict[str, str]:
    """The experiment that the job is filed under; Vertex AI adds a run to it if none is named."""
    name, _, run = job.experiment.partition("/")
    contexts = f"{settings.parent}/metadataStores/default/contexts"
    return present(
        experiment=f"{contexts}/{name}" if name else None,
        experimentRun=f"{contexts}/{name}-{run}" if run else None,
    )


def _resource(settings: Settings, collection: str, name: str) -> str | None:
    """A resource's full name, from that or from its number."""
    if not name:
        return None
    return name if "/" in name else f"{settings.parent}/{collection}/{name}"


def _listed(variables: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]
