"""Options of jobs on Slurm, in Slurm's terms, and the options of `sbatch` that they become."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.options import declared, option
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.errors import OptionError, shown
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.places.slurm import choices, sbatch
from distrain_nb.places.slurm.container import RUNNERS
from distrain_nb.places.slurm.controller import TOKEN, URL

if TYPE_CHECKING:
    from distrain_nb.backends.job import Job
    from distrain_nb.layout.option import Option

    SlurmJob: TypeAlias = "Job[SlurmOptions]"

# Options that the run sets itself, with the option of the cell that decides each.
_OF_THE_RUN = {
    "array": "a run is one job: --tune makes many",
    "ntasks": "--workers says how many nodes, -n how many ranks each has",
    "ntasks-per-core": "-n says how many ranks a node has",
    "ntasks-per-gpu": "-n says how many ranks a node has",
    "ntasks-per-node": "-n says how many ranks a node has",
    "ntasks-per-socket": "-n says how many ranks a node has",
    "nodes": "--workers says how many nodes",
    "job-name": "--name gives the name",
    "output": "the run's log has what the job prints",
    "error": "the run's log has what the job prints",
    "chdir": "the job works in the notebook's folder",
    "wrap": "the cell is what runs",
    "test-only": "--dry-run submits nothing",
    "help": "--dry-run shows the script",
    "usage": "--dry-run shows the script",
    "version": "`%distrain doctor` shows it",
    "wait": "--wait has the cell wait",
    "requeue": "--retries submits a job again",
    "signal": "--signal-before N has ranks save ahead of the time limit",
    "clusters": "the notebook's variable SLURM_CLUSTERS says which cluster",
    "export-file": "--env sets variables",
}
# Those that the layout's options become.
_OF_THE_LAYOUT = {
    "nodes": "--workers",
    "gres": "--workers",
    "time": "--timeout",
    "signal": "--signal-before",
}


def _runners(_: Layout) -> Iterator[Choice]:
    yield Choice(RUNNERS[0], "Apptainer · `apptainer exec` on each node")
    yield Choice(RUNNERS[1], "Pyxis · the cluster's plugin for srun, with Enroot")


@dataclass(frozen=True)
class SlurmOptions(RemoteOptions):
    """What a job asks of `sbatch`. Nodes, their GPUs and the time are in the layout."""

    partition: str = option(
        "NAME", "partition whose nodes to use", "",
        setting="slurm_partition", label="Partition", choices=choices.partition_choices,
        request=("--partition",),
    )  # fmt: skip
    constraint: str = option(
        "FEATURES", "features that every node must have", "",
        label="Constraint", choices=choices.features, request=("--constraint",),
    )  # fmt: skip
    cpus: str = option(
        "N", "CPUs of each node (default: one a rank)", "", label="CPUs",
        request=("--cpus-per-task", "--cpus-per-gpu"),
    )  # fmt: skip
    memory: str = option(
        "SIZE", "memory of each node, such as 64G", "", label="Memory",
        request=("--mem", "--mem-per-gpu", "--mem-per-cpu"),
    )  # fmt: skip
    exclusive: bool = option(
        "", "share no node with other jobs", False, label="Exclusive", request=("--exclusive",)
    )
    account: str = option(
        "NAME", "account to charge", "", setting="slurm_account", label="Account",
        request=("--account",),
    )  # fmt: skip
    qos: str = option(
        "NAME", "quality of service", "", setting="slurm_qos", label="QOS", request=("--qos",)
    )
    reservation: str = option(
        "NAME", "reservation to use", "", label="Reservation", request=("--reservation",)
    )
    sbatch: tuple[str, ...] = option("OPTION", "option for sbatch, such as --sbatch=--nice=10", ())
    jobs_folder: str = option(
        "FOLDER", "folder that all nodes share, for code and logs (default: ~/.distrain/slurm)", "",
        setting="slurm_jobs",
    )  # fmt: skip
    python: str = option(
        "PATH", "Python on the nodes (default: the notebook's; with --image its python3)", "",
        setting="slurm_python",
    )  # fmt: skip
    url: str = option(
        "URL", "slurmrestd that takes the jobs (default: sbatch on this machine)", "",
        setting=URL, label="slurmrestd",
    )  # fmt: skip
    token_file: str = option(
        "FILE", "file with the token for slurmrestd (default: the variable SLURM_JWT)", "",
        setting=TOKEN,
    )  # fmt: skip
    container: str = option(
        "|".join(RUNNERS), "runtime for --image on nodes", RUNNERS[0], setting="slurm_container",
        label="Containers", choices=_runners,
    )  # fmt: skip
    mount: tuple[str, ...] = option("FOLDER", "one more folder for the container of --image", ())


def chosen_sbatch_options(options: SlurmOptions) -> Iterator[tuple[str, str]]:
    """Yield the options of `sbatch` that our options stand for."""
    for name, item in _requested().items():
        value = getattr(options, item.field)
        if value:
            yield name, "" if value is True else value


def option_behind(name: str) -> str:
    """Return the option of ours that an option of `sbatch` comes from, such as `--memory`."""
    item = _requested().get(name)
    return item.name if item else _OF_THE_LAYOUT.get(name, f"--{name}")


def _requested() -> dict[str, Option]:
    """Return the options of a job by the option of `sbatch` that each becomes."""
    every = declared(SlurmOptions).values()
    return {item.request[0].removeprefix("--"): item for item in every if item.request}


def more_sbatch_options(texts: Iterable[str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the options of `--sbatch` by name. Each text is read like a line of a script.

    Raises OptionError for a text that is no option of sbatch, or that contradicts `ours`.
    """
    options: dict[str, str] = {}
    for text in texts:
        if not text.isprintable():
            raise _not_sbatch(text, "expected one line without control characters")
        try:
            pairs = list(sbatch.in_words([*sbatch.words_of(text)]))
        except OptionError as error:
            raise _not_sbatch(text, str(error)) from None
        if not pairs:
            raise _not_sbatch(text, "expected an option of sbatch, such as --nice=10")
        for name, value in pairs:
            if ours.get(name) == value or (name == "no-requeue"):
                continue
            if name in _OF_THE_RUN:
                raise _not_sbatch(text, _OF_THE_RUN[name])
            if name in ours:
                has = sbatch.written(name, ours[name])
                raise _not_sbatch(text, f"the job has {has}: {option_behind(name)}")
            options[name] = value
    return options


def _not_sbatch(text: str, why: str) -> OptionError:
    return OptionError(f"invalid --sbatch {shown(text)}: {why}")
