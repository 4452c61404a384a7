"""The options of a job and of a study as keyword arguments, for editors and type checkers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TypedDict, TypeVar

from distrain_nb.layout import Pool
from distrain_nb.types import Function

Texts = str | Sequence[str]
Number = int | str
Pooled = str | int | Pool
Seconds = str | int
F = TypeVar("F", bound="Function")

# `make keywords` writes both classes from the declarations of the options.


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
    ranks_per_replica: Number | None
    distribution: str | None
    mpi_options: str | None
    scheduling: str | None
    timeout: Seconds | None
    max_wait: Seconds | None
    signal_before: Seconds | None
    retries: Number | None
    retry_on: str | None
    checkpoint: str | None
    tier: str | None
    spot: bool

    # what travels and what comes back
    layout: str | None
    name: str | None
    experiment: str | None
    tag: Texts | None
    result: Texts | None
    param: Texts | None
    args: Texts | None
    data: Texts | None
    include: Texts | None
    exclude: Texts | None
    require: Texts | None
    allow_secret: Texts | None
    hang_after: Number | None
    stop_when_hung: bool
    ignore: Texts | None
    strict: bool
    prove: Number | None
    as_rank: str | None
    steps: Number | None
    debug: bool
    notify: str | None
    max_cost: str | None
    display: str | None
    session: str | None
    rank: str | None
    send: Texts | None
    keep: Texts | None
    wait: bool | None
    dry_run: bool
    export: str | None

    # what only some backends read
    env: Texts | None
    address: str | None
    credentials: str | None
    folder: str | None
    cpus: Number | None
    memory: str | None
    resource: Texts | None
    placement: str | None
    autoscaling: bool
    python: str | None
    rehearse: str | None
    bucket: str | None
    builder: str | None
    repository: str | None
    base: str | None
    python_package: bool
    label: Texts | None
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
    attempts: Number | None
    reservation: str | None
    check_machines: bool
    web_access: bool
    warm_start: Texts | None
    autotune: bool
    partition: str | None
    constraint: str | None
    exclusive: bool
    account: str | None
    qos: str | None
    sbatch: Texts | None
    jobs_folder: str | None
    url: str | None
    token_file: str | None
    container: str | None
    mount: Texts | None
    project: str | None
    service_account: str | None
    pipeline: bool
    nfs: Texts | None
    lustre: Texts | None
    persistent_resource: str | None
    tensorboard: str | None
    network: str | None
    restart: bool
    no_retries: bool
    network_attachment: str | None
    ip_range: Texts | None


class StudyOptions(Options, total=False):
    """Options of a study besides those of its trials: see `docs/tuning.md`."""

    tune: Texts | None
    goal: Texts | None
    trials: Number | None
    parallel: Number | None
    search: str | None
    stop: str | None
    max_failed: Number | None
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
