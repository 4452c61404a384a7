"""The replicas of a custom job: their images, commands and environments."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict

from distrain_nb.cluster import Cluster, replica_environment
from distrain_nb.layout import Role
from distrain_nb.rehearsal.engine import ReplicaSpec, share_of_cores
from distrain_nb.worker.reduction.process_groups import VARIABLE as REDUCERS_VARIABLE
from distrain_nb.worker.replica.secret_stores import SECRETS_VARIABLE

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import types

ROLES = (Role.PRIMARY, Role.WORKERS, Role.SERVERS, Role.EVALUATORS)

_REDUCTION_SERVER = "vertex-ai-restricted/training/reductionserver"

# Where a trial's replica finds the file that CLOUD_ML_HP_METRIC_FILE names, and `cloudml-hypertune`
# looks without that.
_METRICS, METRICS_FILE = "/tmp/hypertune", "output.metrics"

_CLOUD_STORAGE, _MOUNTED = "gs://", "/gcs/"
_FOLDERS = {
    "AIP_MODEL_DIR": "model/",
    "AIP_CHECKPOINT_DIR": "checkpoints/",
    "AIP_TENSORBOARD_LOG_DIR": "logs/",
}
# A source distribution is built with the image's setuptools where it has them: a rehearsal may
# run on a machine without a package index.
_INSTALL = (
    "python3 -c 'import setuptools' 2>/dev/null && alone=--no-build-isolation; "
    "python3 -m pip install --quiet --root-user-action=ignore $alone {packages} "
    '&& exec python3 -m {module} "$@"'
)


@dataclass(frozen=True)
class Member:
    """A replica's place: its task as logs and errors call it (`workerpool1-0`), and its host."""

    role: Role
    index: int
    host: str

    @property
    def task(self) -> str:
        return f"workerpool{self.role.position}-{self.index}"


@dataclass(frozen=True)
class TrialPlace:
    """The number of a job's trial, and the folder into which its replicas report metrics."""

    number: str
    folder: Path


def cluster_id(job: str) -> str:
    """Return the service's own name for a job's cluster."""
    return hashlib.sha256(job.encode()).hexdigest()[:10]


def members(job: str, spec: types.CustomJobSpec) -> tuple[Member, ...]:
    """Return every replica that runs here, in the order of its worker pools.

    No member that isn't there is named to the others: TensorFlow would wait for it for ever.
    """
    return tuple(
        Member(role, index, f"cmle-training-workerpool{role.position}-{cluster_id(job)}-{index}")
        for position, pool in enumerate(spec.worker_pool_specs)
        if not left_out(pool, spec)
        for role in [Role.REDUCERS if reduces(pool) else ROLES[position]]
        for index in range(pool.replica_count)
    )


def job_cluster(
    job: str, spec: types.CustomJobSpec, addresses: Mapping[str, str], trial: str | None = None
) -> Cluster:
    """Return the job's cluster, with each host's address, and the number of its trial."""
    all_members = members(job, spec)
    by_role = {
        role: tuple(addresses[x.host] for x in all_members if x.role is role)
        for role in dict.fromkeys(x.role for x in all_members)
    }
    return Cluster(by_role, cluster_id(job), MessageToDict(type(spec).pb(spec)), trial)


def replica(
    job: str,
    spec: types.CustomJobSpec,
    member: Member,
    cluster: Cluster,
    buckets: Mapping[str, Path],
    services: Mapping[str, str],
) -> ReplicaSpec:
    """Return the container of a member; `buckets` are the folders of the job's buckets by name,
    `services` variables that say where it finds what it asks for."""
    # Reducers of ours come with what the ranks run.
    position = 0 if member.role is Role.REDUCERS else member.role.position
    pool = spec.worker_pool_specs[position]
    environment = {
        **share_of_cores(_computing(spec)),
        **services,
        **service_environment(job, spec),
        **replica_environment(cluster, member.role, member.index),
        **_where_reducers_are(cluster),
    }
    mounts = {f"{_MOUNTED}{name}": folder for name, folder in buckets.items()}
    if pool.python_package_spec.executor_image_uri:
        package = pool.python_package_spec
        return ReplicaSpec(
            member.host,
            package.executor_image_uri,
            ("/bin/sh", "-c", _install(package), "sh"),
            tuple(package.args),
            {**environment, **{x.name: x.value for x in package.env}},
            mounts,
        )
    container = pool.container_spec
    return ReplicaSpec(
        member.host,
        container.image_uri,
        tuple(container.command),
        tuple(container.args),
        {**environment, **{x.name: x.value for x in container.env}},
        mounts,
    )


def trial_container(container: ReplicaSpec, trial: TrialPlace, member: Member) -> ReplicaSpec:
    """Return the container of a trial's replica, which reports its metrics in a file."""
    folder = trial.folder / member.task
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)  # for whoever the image runs as
    variables = {
        "CLOUD_ML_TRIAL_ID": trial.number,
        "CLOUD_ML_HP_METRIC_FILE": f"{_METRICS}/{METRICS_FILE}",
    }
    return replace(
        container,
        environment={**container.environment, **variables},
        mounts={**container.mounts, _METRICS: folder},
    )


def service_environment(job: str, spec: types.CustomJobSpec) -> dict[str, str]:
    """Return the variables that the service gives every replica: the job's names and folders."""
    _, project, _, region, _, number = job.split("/")
    environment = {
        "CLOUD_ML_PROJECT_ID": project,
        "CLOUD_ML_REGION": region,
        "CLOUD_ML_JOB_ID": number,
    }
    base = spec.base_output_directory.output_uri_prefix
    if base:
        base = base.rstrip("/") + "/"
        environment |= {name: base + folder for name, folder in _FOLDERS.items()}
    return environment


def needs_secrets(spec: types.CustomJobSpec) -> bool:
    """Return whether a replica of the job asks for secrets."""
    return SECRETS_VARIABLE in str(spec)


def secret_service_variables(address: str) -> dict[str, str]:
    """Return how a replica finds the metadata server and Secret Manager of a rehearsal."""
    return {
        "GCE_METADATA_HOST": address,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"http://{address}/",
    }


def args_of(pool: types.WorkerPoolSpec) -> Any:
    """Return the arguments of what a pool runs."""
    package = pool.python_package_spec
    return package.args if package.executor_image_uri else pool.container_spec.args


def image(pool: types.WorkerPoolSpec) -> str:
    """Return the image that a pool's replicas run."""
    return pool.python_package_spec.executor_image_uri or pool.container_spec.image_uri


def reduces(pool: types.WorkerPoolSpec) -> bool:
    """Return whether a pool is the Reduction Server, which does nothing without GPUs and NCCL."""
    return _REDUCTION_SERVER in image(pool)


def left_out(pool: types.WorkerPoolSpec, spec: types.CustomJobSpec) -> bool:
    """Return whether a pool is a Reduction Server in whose place no reducers of ours can run.

    They serve ranks that our worker forks: `mpirun`'s and TensorFlow know nothing of them.
    """
    primary = spec.worker_pool_specs[0]
    variables = {x.name for x in (*primary.container_spec.env, *primary.python_package_spec.env)}
    return reduces(pool) and ("DISTRAIN_RUN" not in variables or "DISTRAIN_LAUNCHER" in variables)


def _where_reducers_are(cluster: Cluster) -> dict[str, str]:
    addresses = cluster.addresses.get(Role.REDUCERS, ())
    return {REDUCERS_VARIABLE: ",".join(addresses)} if addresses else {}


def _computing(spec: types.CustomJobSpec) -> int:
    """Return how many replicas compute."""
    return sum(pool.replica_count for pool in spec.worker_pool_specs if not reduces(pool))


def _install(package: Any) -> str:
    packages = (uri.replace(_CLOUD_STORAGE, _MOUNTED, 1) for uri in package.package_uris)
    return _INSTALL.format(
        packages=" ".join(map(shlex.quote, packages)), module=shlex.quote(package.python_module)
    )
