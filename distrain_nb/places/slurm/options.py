"""Options of jobs on Slurm, in Slurm's terms, and what each becomes for `sbatch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.options import option
from distrain_nb.backends.remote.options import RemoteOptions
from distrain_nb.places.slurm import offering

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.backends.base import Job

    SlurmJob: TypeAlias = "Job[SlurmOptions]"


@dataclass(frozen=True)
class SlurmOptions(RemoteOptions):
    """What `sbatch` is asked for besides nodes, their GPUs and the time, which the layout has."""

    partition: str = option(
        "NAME", "partition whose nodes to use", "",
        setting="slurm_partition", label="Partition", choices=offering.partitions,
    )  # fmt: skip
    constraint: str = option(
        "FEATURES", "features that each node has to have", "",
        label="Constraint", choices=offering.features,
    )  # fmt: skip
    cpus: str = option("N", "CPUs of each node (default: one a rank)", "", label="CPUs")
    memory: str = option("SIZE", "memory of each node, such as 64G", "", label="Memory")
    exclusive: bool = option("", "share no node with other jobs", False)
    account: str = option(
        "NAME", "account that is charged", "", setting="slurm_account", label="Account"
    )
    qos: str = option("NAME", "quality of service", "", setting="slurm_qos", label="QOS")
    reservation: str = option("NAME", "reservation of nodes to use", "")
    sbatch: tuple[str, ...] = option("OPTION", "one more option for sbatch, --sbatch=--nice=10", ())
    jobs_folder: str = option(
        "FOLDER", "folder that all nodes share, for code and logs (default: ~/.distrain/slurm)", "",
        setting="slurm_jobs",
    )  # fmt: skip
    python: str = option(
        "PATH", "Python on the nodes (default: the notebook's)", "", setting="slurm_python"
    )


def chosen(options: SlurmOptions) -> Iterator[tuple[str, str]]:
    """Yield the options of sbatch that options of ours stand for."""
    for name, value in (
        ("partition", options.partition),
        ("constraint", options.constraint),
        ("mem", options.memory),
        ("account", options.account),
        ("qos", options.qos),
        ("reservation", options.reservation),
    ):
        if value:
            yield name, value
    if options.exclusive:
        yield "exclusive", ""
