"""The options of a layout, in the magic, in Python and in YAML."""

from __future__ import annotations

from distrain_nb.layout.durations import duration, seconds
from distrain_nb.layout.option import Option
from distrain_nb.layout.option_readers import causes, one_of, place_name, retries
from distrain_nb.layout.place import PLACES
from distrain_nb.layout.pool import POOL_FORM, Pool

LAUNCHERS = ("auto", "torchrun", "mpi", "tensorflow", "parameter-server", "python")


def _pool(field: str, about: str) -> Option:
    return Option(field, "POOL", about, grammar=POOL_FORM, read=Pool.parse)


def _duration(field: str, about: str, label: str, hint: str) -> Option:
    return Option(
        field, "DURATION", about, grammar="a duration such as 2h, 1h30m, 7d, or seconds",
        read=seconds, write=duration, label=label, hint=hint, extra=True,
    )  # fmt: skip


OPTIONS: tuple[Option, ...] = (
    Option("on", "|".join(PLACES), "where the job runs", read=place_name, words=PLACES),
    _pool("primary", "machine of the primary replica, such as n1-standard-8+2*T4"),
    _pool("workers", "pool of workers, such as 4*n1-standard-8+2*T4"),
    _pool("servers", "pool of parameter servers"),
    _pool("reducers", "pool that sums gradients; auto sizes it"),
    _pool("evaluators", "pool of evaluators"),
    Option(
        "region", "REGION", "region of the cloud, such as us-central1",
        label="Region", kind="combo", hint="any",
    ),
    Option(
        "framework", "NAME[-VERSION]", "framework of the container, such as pytorch-2.4",
        label="Framework", kind="combo", hint="not chosen",
    ),
    Option(
        "image", "URI", "image of the training container",
        label="Container image", kind="combo", hint="auto",
    ),
    Option(
        "launcher", "|".join(LAUNCHERS), "program that starts the ranks", read=one_of(LAUNCHERS),
        words=LAUNCHERS, label="Launcher", kind="combo",
    ),
    Option(
        "ranks_per_replica", "N", "number of ranks per replica", read=int, short="-n",
        label="Ranks per replica", kind="number", hint="auto",
    ),
    Option(
        "distribution", "NAME",
        "SageMaker distribution that --launcher doesn't cover, such as smddp",
        label="Distribution", kind="combo", hint="by launcher", extra=True,
    ),
    Option(
        "mpi_options", "TEXT", "more options for mpirun",
        label="MPI options", hint="such as -x NAME", extra=True,
    ),
    Option(
        "scheduling", "STANDARD|SPOT|FLEX_START", "how to obtain machines", read=str.upper,
        label="Scheduling", kind="combo", hint="STANDARD", extra=True,
    ),
    _duration("timeout", "time limit of the job, such as 2h", "May run for", "such as 2h"),
    _duration("max_wait", "longest time to wait for machines", "May wait for", "such as 1d"),
    _duration(
        "signal_before", "time before the limit at which the program is asked to save",
        "Save before the limit", "such as 60s",
    ),
    Option(
        "retries", "N", "most restarts of the run after a kill or a lost machine",
        read=retries, label="Retries", kind="number", hint="0", extra=True,
    ),
    Option(
        "retry_on", "CAUSE,…",
        "causes of a restart: exit statuses, signals, preemption, lost, time-limit",
        read=causes, label="Retry on", hint="signals,preemption,lost,75", extra=True,
    ),
    Option(
        "checkpoint", "URI", "folder in a bucket for checkpoints",
        label="Checkpoints", hint="s3://…", extra=True,
    ),
    Option(
        "tier", "NAME", "scale tier of AI Platform", read=str.upper,
        label="Scale tier", kind="combo", hint="CUSTOM", extra=True,
    ),
)  # fmt: skip
SPOT = Option("spot", "", "short for --scheduling SPOT", default=False)

BY_FIELD = {option.field: option for option in OPTIONS}
BY_FLAG = {name: option for option in OPTIONS for name in reversed(option.names)}


def option_of(field: str) -> Option:
    """Return the option of a field of a layout."""
    return BY_FIELD[field]
