"""The request: `CreateTrainingJob`, as JSON in the API's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypedDict, cast

from distrain_nb.backends.remote import tracker
from distrain_nb.backends.remote.cloud import CODE
from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.variables import plain_variables, secrets, variables_of
from distrain_nb.cluster import time_limit
from distrain_nb.errors import OptionError
from distrain_nb.image.recipe import ENTRYPOINT
from distrain_nb.layout import Layout
from distrain_nb.layout.catalog import current
from distrain_nb.layout.catalog.index import figure, limit
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.mappings import present
from distrain_nb.places.sagemaker import delivery as script
from distrain_nb.places.sagemaker import options
from distrain_nb.places.sagemaker.channels import Channel
from distrain_nb.places.sagemaker.containers import framework_of
from distrain_nb.places.sagemaker.forms.request import hosts, resources, times
from distrain_nb.places.sagemaker.names import (
    CHECKPOINTS,
    CODE_CHANNEL,
    EXPERIMENT_TAG,
    INPUT,
    OUTPUT,
    RUN,
    RUN_TAG,
    SOURCE,
    SOURCE_CHANNEL,
    TENSORBOARD,
)
from distrain_nb.places.sagemaker.options import SageMakerJob
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.replica.rank_count import VARIABLE

if TYPE_CHECKING:
    from distrain_nb.places.sagemaker.settings import Settings

# A spot job that names no time to wait gets this much beyond the time that it may run.
SPOT_WAIT_S = 86400

_CODE_FOLDER = f"{INPUT}/{CODE_CHANNEL}"
_START = f'PYTHONPATH="{_CODE_FOLDER}/worker:$PYTHONPATH" exec python3 -m distrain_nb.worker'


@dataclass(frozen=True)
class Start:
    """How ranks come to life: the code's delivery, the image, the launcher, and the ranks of a host
    by its instance type, the first choice first."""

    delivery: Delivery
    image: str
    launcher: str
    ranks_of: tuple[tuple[str, int], ...]

    @property
    def ranks(self) -> int:
        """The ranks of a host of the first choice."""
        return self.ranks_of[0][1]

    @property
    def same_ranks(self) -> bool:
        """Whether hosts of every type have as many."""
        return len({ranks for _, ranks in self.ranks_of}) == 1


class Machines(TypedDict, total=False):
    """A `ResourceConfig`, or one of its groups or choices: how many hosts there are."""

    InstanceType: str
    InstanceCount: int
    InstancePreferences: list[Machines]
    InstanceGroups: list[Machines]


class Algorithm(TypedDict, total=False):
    """An `AlgorithmSpecification`: what metrics look like in the log."""

    MetricDefinitions: list[dict[str, str]]


class RequestParts(TypedDict):
    """What is read again of a `CreateTrainingJob`, and of what `DescribeTrainingJob` gives."""

    AlgorithmSpecification: Algorithm
    ResourceConfig: Machines
    Environment: dict[str, str]


def read(request: JsonObject) -> RequestParts:
    """Return the parts of a request that are read again."""
    return cast("RequestParts", request)


def request_of(job: SageMakerJob, settings: Settings, start: Start) -> dict[str, Json]:
    """Return the whole request, with stand-ins for what only the submission can tell.

    Raises OptionError for options that can't be read.
    """
    job_options = job.options
    return present(
        TrainingJobName=RUN,
        HyperParameters=_hyperparameters(job, settings, start),
        AlgorithmSpecification=_algorithm(job, start),
        RoleArn=settings.role or None,
        InputDataConfig=[channel.config() for channel in _channels(job, settings, start)],
        OutputDataConfig=present(
            KmsKeyId=settings.output_key or None, S3OutputPath=settings.folder
        ),
        ResourceConfig={**_machines(job), **_resources(job, settings)},
        VpcConfig=present(
            SecurityGroupIds=list(job_options.security_group),
            Subnets=list(job_options.subnet),
        ),
        StoppingCondition={**times(job.layout), **_times(job.layout)},
        Tags=_tags(job),
        EnableNetworkIsolation=job_options.isolate or None,
        EnableInterContainerTrafficEncryption=job_options.encrypt or None,
        EnableManagedSpotTraining=job.layout.spot or None,
        CheckpointConfig={
            "S3Uri": job.layout.checkpoint or f"{settings.folder}/{RUN}/checkpoints",
            "LocalPath": CHECKPOINTS,
        },
        TensorBoardOutputConfig={"LocalPath": TENSORBOARD, "S3OutputPath": settings.folder},
        Environment=_environment(job, start),
        RetryStrategy=present(
            MaximumRetryAttempts=options.attempts(job_options.attempts)
            or job.layout.retries
            or None
        ),
        RemoteDebugConfig=present(EnableRemoteDebug=job_options.web_access or None),
        InfraCheckConfig=present(EnableInfraCheck=job_options.check_machines or None),
    )


def _hyperparameters(job: SageMakerJob, settings: Settings, start: Start) -> dict[str, str]:
    """Return the user's, and in script mode the container's."""
    values = options.hyperparameters(job.options.hyperparameter)
    if start.delivery is not Delivery.ARCHIVE:
        return options.encoded(values)
    framework = job.layout.framework_name or framework_of(job)
    archive = f"{settings.folder}/{RUN}/{SOURCE}"
    if job.options.isolate:
        archive = f"{INPUT}/{SOURCE_CHANNEL}/{PurePosixPath(SOURCE).name}"
    ranks = start.ranks if start.same_ranks else None  # then the container counts the GPUs
    theirs = script.hyperparameters(job.layout, ranks, settings, framework)
    theirs["sagemaker_submit_directory"] = archive
    for name in sorted(script.STARTS & values.keys()):
        raise OptionError(
            f"invalid --hyperparameter {name}: with --python-package the container starts the "
            "program by it"
        )
    return options.encoded({**theirs, **values})


def _algorithm(job: SageMakerJob, start: Start) -> dict[str, Json]:
    metrics = options.metrics(job.options.metric)
    starts = {Delivery.IMAGE: list(ENTRYPOINT), Delivery.FILES: ["sh", "-c", _START]}
    return present(
        TrainingImage=start.image or placeholders.TRAINING_IMAGE,
        TrainingInputMode="File",
        ContainerEntrypoint=starts.get(start.delivery),
        MetricDefinitions=[{"Name": name, "Regex": regex} for name, regex in metrics.items()],
        EnableSageMakerMetricsTimeSeries=True if metrics else None,
    )


def _channels(job: SageMakerJob, settings: Settings, start: Start) -> tuple[Channel, ...]:
    channels = options.channels(job)
    if start.delivery is Delivery.FILES:
        return (*channels, Channel(CODE_CHANNEL, "s3", f"{settings.folder}/{RUN}/{CODE}/"))
    if start.delivery is Delivery.ARCHIVE and job.options.isolate:
        return (*channels, Channel(SOURCE_CHANNEL, "s3", f"{settings.folder}/{RUN}/{SOURCE}"))
    return channels


def _resources(job: SageMakerJob, settings: Settings) -> dict[str, Json]:
    """Return the parts of a machine's request that no layout has. Those with storage of their own
    encrypt it themselves, and take no key."""
    job_options, pool = job.options, hosts(job.layout)
    default = figure(current(), "sagemaker", "volume_gb_default")
    own_storage = all(map(has_own_storage, pool.machines))
    return present(
        VolumeSizeInGB=pool.disk_gb or default,
        VolumeKmsKeyId=None if own_storage else settings.volume_key or None,
        TrainingPlanArn=None if pool.alternatives else job_options.reservation or None,
        KeepAlivePeriodInSeconds=options.keep_alive(job_options.keep_alive),
    )


def has_own_storage(machine: str | None) -> bool:
    """Return whether an instance type has storage of its own, which has no volume to encrypt."""
    family = (machine or "").rpartition(".")[0]
    return family in limit(current(), "sagemaker", "volume_fixed_families")


def _machines(job: SageMakerJob) -> dict[str, Json]:
    """Return the machines of the layout. A training plan is for one type: where there are
    several to choose from, for the first."""
    machines = resources(job.layout)
    choices = machines.get("InstancePreferences")
    if not job.options.reservation or not isinstance(choices, list):
        return machines
    first, *others = cast("list[dict[str, Json]]", choices)
    planned = {**first, "TrainingPlanArns": [job.options.reservation]}
    return {**machines, "InstancePreferences": [planned, *others]}


def _times(layout: Layout) -> dict[str, Json]:
    """Limits that always hold; the service wants both of a spot job."""
    runs = layout.timeout or figure(current(), "sagemaker", "run_seconds_default")
    if not layout.spot:
        return {"MaxRuntimeInSeconds": runs}
    waits = layout.max_wait or runs + SPOT_WAIT_S
    return {"MaxRuntimeInSeconds": runs, "MaxWaitTimeInSeconds": waits}


def _tags(job: SageMakerJob) -> list[dict[str, str]]:
    tags = options.tags(job.options.label)
    experiment = {EXPERIMENT_TAG: job.experiment} if job.experiment else {}
    tags_of_job = {**tags, **experiment, RUN_TAG: RUN}
    return [{"Key": key, "Value": value} for key, value in tags_of_job.items()]


def _ranks(start: Start) -> str:
    """Return the ranks of a host as the worker reads them."""
    if start.same_ranks:
        return str(start.ranks)
    return ",".join(f"{machine}={ranks}" for machine, ranks in start.ranks_of)


def _environment(job: SageMakerJob, start: Start) -> dict[str, str]:
    """Return the variables of our worker, with those that the user adds."""
    ours = {
        "DISTRAIN_RUN": RUN,
        VARIABLE: _ranks(start),
        "DISTRAIN_LAUNCHER": start.launcher,
        "DISTRAIN_OUTPUT": OUTPUT,
        "DISTRAIN_TENSORBOARD": TENSORBOARD,
    }
    if job.results:
        ours["DISTRAIN_RESULTS"] = ",".join(job.results)
    if job.layout.mpi_options and start.launcher == "mpi":
        ours["DISTRAIN_MPI_OPTIONS"] = job.layout.mpi_options
    if start.delivery is Delivery.FILES:
        ours["PYTHONUNBUFFERED"] = "1"
        ours["DISTRAIN_PROGRAM"] = f"{_CODE_FOLDER}/program"
    ours |= {**time_limit(job.layout), **tracker.variables(job)}
    variables = variables_of(job.options.env)
    return {**ours, **plain_variables(variables), **secrets(variables, options.secret)}
