"""The options of a job as keyword arguments, for editors and type checkers.

`tests/api/test_keywords.py` compares them with the declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar

from distrain_nb.layout import Pool

if TYPE_CHECKING:
    from distrain_nb.types import Function

Texts = str | Sequence[str]
Pooled = str | int | Pool
Seconds = str | int
F = TypeVar("F", bound="Function")


class Options(TypedDict, total=False):
    """Options of `%%distrain` in Python's spelling; None is an option that is not given.

    A pool is a text such as `3*n1-standard-8+2*T4`, a number of replicas, or a `Pool`; a duration
    is a number of seconds or a text such as `1h30m`.
    """

    # where, on which machines, and how long
    on: str | None
    primary: Pooled | None
    workers: Pooled | None
    servers: Pooled | None
    reducers: Pooled | None
    evaluators: Pooled | None
    region: str | None
    framework: str | None
    image: str | None
    launcher: str | None
    ranks_per_replica: int | None
    distribution: str | None
    mpi_options: str | None
    scheduling: str | None
    spot: bool
    timeout: Seconds | None
    max_wait: Seconds | None
    checkpoint: str | None
    tier: str | None
    # what travels and what comes back
    layout: str | None
    name: str | None
    experiment: str | None
    result: Texts | None
    param: Texts | None
    args: Texts | None
    data: Texts | None
    include: Texts | None
    exclude: Texts | None
    require: Texts | None
    allow_secret: Texts | None
    wait: bool | None
    dry_run: bool
    export: str | None
    rehearse: str | None
    builder: str | None
    # what only a Ray cluster has a use for
    address: str | None
    credentials: str | None
    folder: str | None
    cpus: str | None
    memory: str | None
    resource: Texts | None
    placement: str | None
    autoscaling: bool
    python: str | None
    # what only clouds have a use for
    project: str | None
    bucket: str | None
    service_account: str | None
    repository: str | None
    base: str | None
    python_package: bool
    pipeline: bool
    label: Texts | None
    env: Texts | None
    nfs: Texts | None
    lustre: Texts | None
    reservation: str | None
    persistent_resource: str | None
    web_access: bool
    tensorboard: str | None
    network: str | None
    network_attachment: str | None
    ip_range: Texts | None
    restart: bool
    no_retries: bool
    role: str | None
    channel: Texts | None
    hyperparameter: Texts | None
    metric: Texts | None
    subnet: Texts | None
    security_group: Texts | None
    kms_key: str | None
    encrypt: bool
    isolate: bool
    keep_alive: str | None
    check_machines: bool
    attempts: str | int | None
    warm_start: Texts | None
    autotune: bool
    partition: str | None
    constraint: str | None
    exclusive: bool
    account: str | None
    qos: str | None
    sbatch: Texts | None
    jobs_folder: str | None


class StudyOptions(Options, total=False):
    """Options of a study besides those of its trials: see `docs/tuning.md`."""

    tune: Texts | None
    goal: Texts | None
    trials: int | str | None
    parallel: int | str | None
    search: str | None
    stop: str | None
    max_failed: int | str | None
    initial: Texts | None
    measurement: str | None
    noise: str | None
    end: str | None
    study: str | None


def with_options(function: F) -> F:
    """Return the function with a signature that names the options, as notebooks complete them."""
    return _naming(function, Options)


def with_study_options(function: F) -> F:
    """Return the function with a signature that also names the options of a study."""
    return _naming(function, StudyOptions)


def _naming(function: F, options: type) -> F:
    signature = inspect.signature(function)
    positional = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=getattr(kind, "__forward_arg__", kind),
        )
        for name, kind in options.__annotations__.items()
    ]
    parameters = [*positional, *named]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
