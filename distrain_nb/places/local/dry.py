"""From a job for any place to ranks of it that run alone on this machine (`--as-rank`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.cluster import choose, preload
from distrain_nb.cluster.dry_ranks import dry_ranks
from distrain_nb.places.local.plan import FOLDERS, LocalPlan, about_data, about_packages
from distrain_nb.worker.facts.dry import VARIABLE
from distrain_nb.worker.files.folder import FACTS_VARIABLE
from distrain_nb.worker.files.launch import RUN, Launch, ProcessSpec

if TYPE_CHECKING:
    from distrain_nb.places.local.plan import LocalJob


def dry_plan(job: LocalJob) -> LocalPlan:
    """Pure. Raises OptionError for ranks that there are not, and for frameworks whose ranks can't
    run alone."""
    chosen = dry_ranks(job.as_rank, job.steps, job.program, job.layout)
    launcher, _ = choose(job.program)
    common = {
        **{name: f"{RUN}/{folder}" for name, folder in FOLDERS.items()},
        VARIABLE: chosen.as_json(),
        FACTS_VARIABLE: "0",  # weights and data of ranks that have never met would be compared
        "TORCHDYNAMO_DISABLE": "1",  # which follows no operation of compiled code
    }
    processes = tuple(
        ProcessSpec(r.label, r.role.value, r.replica, r.rank, {**r.environment, **common})
        for r in chosen.placed(job.name or "local")
    )
    launch = Launch(
        processes=processes,
        working_folder=str(job.folder),
        preload=tuple(preload(job.program, "torchrun")),
        grace=job.config.grace,
        timeout=job.layout.timeout,
        distributes=False,
        in_turn=True,
    )
    findings = (*about_packages(job), *about_data(job))
    return LocalPlan(job, launcher, chosen.per_replica, chosen.devices, launch, findings)
