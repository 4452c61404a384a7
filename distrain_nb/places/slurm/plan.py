"""From a job to the script that sbatch gets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.shared_folder import SharedSpec
from distrain_nb.cluster import choose, process_findings, ranks_per_replica
from distrain_nb.cluster.launchers import PER_GPU
from distrain_nb.config import path_named
from distrain_nb.findings import Finding
from distrain_nb.places.slurm import forms, rest_bodies, sbatch, validation
from distrain_nb.places.slurm.container import container_command
from distrain_nb.places.slurm.controller import read_url
from distrain_nb.places.slurm.options import more_sbatch_options

if TYPE_CHECKING:
    from distrain_nb.places.slurm.options import SlurmJob

SCRIPT, JOB_OUTPUT, ENDED, JOB = "job.sh", "said", "ended", "job"
JOBS, PYTHON, COMMANDS, SINFO, SCONTROL = "jobs", "python", "sbatch", "sinfo", "partitions"
API, TROUBLE = "api", "trouble"  # slurmrestd's version, or why it refuses
# The PATH of a machine without Slurm's commands may not lead to them on a node, whose login shells
# know. What a profile prints ends up before the slash, in a folder that isn't there.
FIND_SRUN = "command -v srun > /dev/null || PATH=$PATH:$($BASH -lc 'echo /:$PATH')"

_ENDS_ALL = "--kill-on-bad-exit=1"
_GOES_ON = ("--kill-on-bad-exit=0", "--no-kill", "--wait=0")


@dataclass(frozen=True, kw_only=True)
class SlurmSpec(SharedSpec):
    """`script` is what sbatch gets, `options` those of its head, by name. With a `url`, slurmrestd
    gets them, and `token_file` has its token."""

    script: str
    url: str = ""
    token_file: str = ""
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SlurmPlan:
    """`options` are those of sbatch, by name; `gpus` are those of a node."""

    job: SlurmJob
    ranks_per_replica: int
    gpus: int
    options: Mapping[str, str]
    findings: tuple[Finding, ...]

    def spec(self) -> SlurmSpec:
        job = self.job
        shared = job.options.jobs_folder or job.machine.get(JOBS, "~/.distrain/slurm")
        spec = SharedSpec.for_job(job, shared, self.ranks_per_replica)
        options = {
            "job-name": spec.run if job.name else f"distrain-{job.nonce}",
            **self.options,
            # sbatch puts facts of the job in the place of `%j` and the like.
            "output": f"{spec.folder}/{JOB_OUTPUT}".replace("%", "%%"),
        }
        texts, url = job.options.sbatch, job.options.url
        more = rest_bodies.more_options(texts) if url else more_sbatch_options(texts, options)
        start = self._start(spec.folder)
        token = job.options.token_file
        return SlurmSpec(
            run=spec.run,
            folder=spec.folder,
            environment=spec.environment,
            variables=spec.variables,
            hidden=spec.hidden,
            retries=spec.retries,
            retried=spec.retried,
            options={**options, **more} if url else options,
            script=script(spec.folder, {**options, **more}, start, [FIND_SRUN] if url else []),
            url=read_url(url),
            token_file=str(job.folder / path_named(token)) if url and token else "",
        )

    def _start(self, folder: str) -> list[str]:
        """Return what starts Python on a node, in the image if there is one."""
        python = "python3" if self.job.layout.image else self.job.machine.get(PYTHON, "python3")
        within = container_command(self.job, folder, self.options.get("gres", ""))
        return [*within, self.job.options.python or python]

    def __str__(self) -> str:
        """Return the script that sbatch gets."""
        head, _, lines = self.spec().script.partition("\n")
        return "\n".join([head, *(f"# {note}" for note in self._notes()), lines.rstrip("\n")])

    def _notes(self) -> Iterator[str]:
        nodes, ranks = int(self.options["nodes"]), self.ranks_per_replica
        yield f"{counted(nodes, 'node')} with {counted(ranks, 'rank')} each"
        partition = validation.partition_of(self.job)
        if partition:
            yield f"partition {partition.name}: {partition}"
        spec = self.spec()
        if spec.url:
            version = int(self.job.machine.get(API) or rest_bodies.NEWEST)
            yield f"POST {spec.url}/slurm/v0.0.{version}/job/submit, with this script and"
            yield json.dumps(dict(rest_bodies.job_fields(version, spec.options)))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plan(job: SlurmJob) -> SlurmPlan:
    """Plan a job; the same job always has the same plan. Raises OptionError."""
    gpus = forms.gpus(forms.options(job.layout).get("gres", ""))
    launcher = job.layout.launcher
    launcher = choose(job.program)[0] if launcher == "auto" else launcher
    ranks = ranks_per_replica(job.program, job.layout, gpus if launcher in PER_GPU else 1)
    options = validation.sbatch_options(job, ranks)
    findings = (
        *validation.findings(job, options),
        *process_findings(job.program, job.layout, launcher, ranks, gpus),
    )
    draft = SlurmPlan(job, ranks, gpus, options, findings)
    spec = draft.spec()  # raises for options of the script that can't be
    if spec.url:
        dict(rest_bodies.job_fields(rest_bodies.NEWEST, spec.options))
    return draft


def held(spec: SlurmSpec) -> SlurmSpec:
    """Return the spec of a job that holds its nodes for a session: the replicas that are left go
    on where a node fails, or another replica."""
    goes_on = shlex.join([*_GOES_ON])
    text = spec.script.replace(_ENDS_ALL, goes_on, 1)
    head, _, rest = text.partition("\n")
    return replace(spec, script=f"{head}\n#SBATCH --no-kill\n{rest}")


def script(
    folder: str,
    options: Mapping[str, str],
    python: Sequence[str],
    before: Sequence[str] = (),
) -> str:
    """Return the script that sbatch gets. It runs on the first node; `srun` starts the worker on
    each. A shell that is asked to end waits for `srun`, and leaves how that has ended: the
    controller forgets."""
    # Without --cpus-per-task the step has all CPUs that the job has of a node.
    srun = ["srun", _ENDS_ALL, "--cpu-bind=none"]
    srun += [*python, f"{folder}/start.py", "SLURM_PROCID"]
    return "\n".join(
        [
            "#!/bin/bash",
            *sbatch.heads({**options, "no-requeue": ""}),
            f"echo $SLURM_JOB_ID > {shlex.quote(f'{folder}/{JOB}')}",
            *before,
            "trap : TERM",
            shlex.join(srun),
            "status=$?",
            f"echo $status > {shlex.quote(f'{folder}/{ENDED}')}",
            "exit $status",
            "",
        ]
    )
