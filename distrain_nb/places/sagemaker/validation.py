"""What can't be, or won't do, on SageMaker: options that don't go together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from distrain_nb.backends.remote.delivery import Delivery
from distrain_nb.backends.remote.variables import variables_of
from distrain_nb.backends.tuning import STUDY_ONLY
from distrain_nb.findings import Finding, Severity
from distrain_nb.places.sagemaker import options
from distrain_nb.places.sagemaker.containers import BARE, containers, framework_of, python_of
from distrain_nb.places.sagemaker.delivery import needed
from distrain_nb.places.sagemaker.forms.request import groups, hosts
from distrain_nb.places.sagemaker.names import CODE_CHANNEL, SOURCE_CHANNEL
from distrain_nb.places.sagemaker.options import SageMakerJob
from distrain_nb.places.sagemaker.request import Start, has_own_storage
from distrain_nb.secrets import STORED

# What the worker needs.
_PYTHON = (3, 8)


def findings(job: SageMakerJob, start: Start, base: str) -> Iterator[Finding]:
    """Yield all that boto3 doesn't look at but for sizes; `base` is what an image is built on.

    Raises OptionError.
    """
    if find_spec("boto3") is None:
        message = "SageMaker is asked through boto3: pip install 'distrain-nb[sagemaker]'"
        yield _error("no-boto3", "on", message)
    yield from _of_builder(job)
    yield from _of_network(job)
    yield from _of_machines(job)
    yield from _of_retries(job)
    if job.options.isolate and _names_secrets(job):
        message = "a job with --isolate reaches no Secrets Manager: leave one of the two out"
        yield _error("isolated-secret", "env", message)
    yield from _of_code(job, start)
    for name in ("warm_start", "autotune"):
        if getattr(job.options, name):
            message = f"--{name.replace('_', '-')} is for a study: it does nothing without --tune"
            yield _warning(STUDY_ONLY.lstrip("."), name, message)
    if start.delivery is Delivery.IMAGE and start.launcher == "mpi" and base.startswith(BARE):
        message = f"{base} has no mpirun, which launcher mpi needs: name an image that has it"
        yield _warning("mpirun", "base", message)


def _of_retries(job: SageMakerJob) -> Iterator[Finding]:
    if not job.layout.retries:
        return
    if job.options.attempts:
        yield _error(
            "retries", "attempts", "--attempts and --retries are one number: leave one out"
        )
    message = (
        "SageMaker starts the job again by itself, after errors of its own and after spot "
        "interruptions: an end by a signal or an exit status is not retried"
    )
    yield Finding("sagemaker.retries", Severity.INFO, "retries", message)


def _names_secrets(job: SageMakerJob) -> bool:
    values = variables_of(job.options.env)
    return any(value.startswith(STORED) for value in values.values())


def _of_builder(job: SageMakerJob) -> Iterator[Finding]:
    if job.options.builder == "cloudbuild":
        message = "Cloud Build is Google's; write --builder append or --builder docker"
        yield _error("builder", "builder", message)


def _of_network(job: SageMakerJob) -> Iterator[Finding]:
    job_options = job.options
    subnets, groups = job_options.subnet, job_options.security_group
    if bool(subnets) != bool(groups):
        missing = "security_group" if subnets else "subnet"
        message = "--subnet and --security-group go together: a VPC is named by both"
        yield _error("vpc", missing, message)
    for channel in options.channels(job):
        if channel.needs_vpc and not (subnets and groups):
            yield _error(
                "file-system-vpc",
                "channel",
                f"{channel.uri} is reached through a VPC: add --subnet and --security-group",
            )
        if channel.name in (CODE_CHANNEL, SOURCE_CHANNEL):
            message = f"{channel.name!r} is the channel of our own code; choose another name"
            yield _error("channel-name", "channel", message)
    if job_options.encrypt and "encrypt" not in job.defaults and job.layout.size == 1:
        message = "there is one host, so no traffic between hosts to encrypt"
        yield _warning("encrypt", "encrypt", message)


def _of_machines(job: SageMakerJob) -> Iterator[Finding]:
    if job.options.keep_alive and job.layout.spot:
        message = "spot machines can't be kept for the next job: leave --spot or --keep-alive out"
        yield _error("keep-alive-spot", "keep_alive", message)
    machines = hosts(job.layout).machines
    encrypting = [str(machine) for machine in machines if has_own_storage(machine)]
    if job.options.kms_key and 0 < len(encrypting) < len(machines):
        message = (
            f"{', '.join(encrypting)} encrypts its own storage and takes no key, which the other "
            "instance types to choose from need: SageMaker may refuse the job"
        )
        yield _warning("kms-choices", "kms_key", message)


def _of_code(job: SageMakerJob, start: Start) -> Iterator[Finding]:
    if start.delivery is Delivery.ARCHIVE:
        yield from _of_script(job, start)
    elif job.layout.distribution:
        yield _error(
            "distribution",
            "distribution",
            f"{job.layout.distribution} is started by AWS's framework containers: "
            "add --python-package",
        )


def _of_script(job: SageMakerJob, start: Start) -> Iterator[Finding]:
    python = python_of(start.image)
    if groups(job.layout):
        message = (
            "AWS's containers launch ranks in one instance group only: give the primary the "
            "workers' instance type, or leave --python-package out"
        )
        yield _error("instance-groups", "primary", message)
    if not start.image and not job.layout.framework_version:
        framework = job.layout.framework or framework_of(job)
        newest = ", ".join({row.framework: f"{row.framework}-{row.version}"
                            for row in containers()}.values())  # fmt: skip
        message = (
            f"no framework container of AWS is known for {framework or 'this program'} here: name "
            f"one with --image, or a framework such as --framework {newest}"
        )
        yield _error("no-container", "framework", message)
    elif python and python < _PYTHON:
        message = (
            f"{start.image} has Python {python[0]}.{python[1]}; a captured program needs 3.8 or "
            "later: take a newer --framework, or --image"
        )
        yield _error("python", "framework", message)
    framework = job.layout.framework_name or framework_of(job)
    lacking = ", ".join(needed(job.program, framework))
    if job.options.isolate and lacking:
        message = f"an isolated job can't install what its container lacks: {lacking}"
        yield _warning("isolate-packages", "isolate", message)


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.ERROR, where, message)


def _warning(code: str, where: str, message: str) -> Finding:
    return Finding(f"sagemaker.{code}", Severity.WARNING, where, message)
