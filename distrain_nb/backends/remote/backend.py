"""What backends have in common whose jobs run elsewhere."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from distrain_nb.backends.base import Backend, Handle, Health, Job, Plan, packages
from distrain_nb.backends.plugins import lacks_for_rehearsal
from distrain_nb.backends.remote.log_ordering import is_recent
from distrain_nb.backends.remote.options import RemoteOptions, RemoteOptionsT, delete_variables
from distrain_nb.backends.remote.processes import processes_of, start_detached
from distrain_nb.backends.remote.service import Pace, Service
from distrain_nb.backends.remote.sharing import CARRIER, hand_over
from distrain_nb.backends.remote.submission import Journal, Spec, Submission, fill_placeholders
from distrain_nb.backends.remote.tracker import MLFLOW_RUN, mlflow_variable
from distrain_nb.backends.tuning import TRIAL, TRIAL_ARGUMENTS, TRIAL_NONCE, TrialStart
from distrain_nb.backends.uploads import Folder, Upload
from distrain_nb.errors import DistrainError
from distrain_nb.secrets import refuse_secret_files, refuse_secret_texts, refuse_secrets
from distrain_nb.types import JsonObject, Unknown
from distrain_nb.worker.files.folder import (
    CARRIER_LOG,
    LOCK_FILE,
    PROGRAM_FOLDER,
    STATUS_FILE,
    SUBMISSION_FILE,
)
from distrain_nb.worker.files.status import Owner, Process, Progress, State, Status, request_cancel

START_AGAIN_AFTER_S = 20.0


class RemotePlan(Plan, Protocol):
    """A plan whose job runs elsewhere."""

    @property
    def job(self) -> Job[RemoteOptions]: ...

    def spec(self) -> Spec:
        """Return the facts of the job's run that `service` needs."""


RemotePlanT = TypeVar("RemotePlanT", bound=RemotePlan)


class RemoteBackend(Backend[RemoteOptionsT, RemotePlanT]):
    """Hands a run to a process of its own, which outlives the kernel; reads its folder.

    `pace` says how often its service is asked, and how long its log may take to be whole.
    `packages` are distributions without which nothing can be submitted; `extra` of ours brings
    them. `shares_carriers` says that one process may carry several runs, whose services then serve
    several threads.
    """

    has_image = True
    pace: ClassVar[Pace] = Pace()
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    shares_carriers: ClassVar[bool] = False

    @abstractmethod
    def service(self, spec: JsonObject, endpoints: Mapping[str, str], folder: Path) -> Service:
        """Return the service that a `Spec` in JSON was made for; `endpoints` are a rehearsal's, or
        empty. `folder` is the run's, where it may keep files of its own."""

    def handle(self, plan: RemotePlanT) -> Handle:
        return {"rehearsal": True} if plan.job.options.rehearsed else {}

    adds_trials: ClassVar[bool] = False  # the values of --env are gone when a study has ended

    def trial_job(
        self,
        job: Job[RemoteOptionsT],
        parallel: int,  # noqa: ARG002
    ) -> tuple[Job[RemoteOptionsT], tuple[str, ...]]:
        return replace(job, trial=TRIAL, nonce=TRIAL_NONCE), ()

    def write_trials(self, plan: RemotePlanT, folder: Path) -> None:
        spec = plan.spec()
        if TRIAL_ARGUMENTS not in json.dumps(asdict(spec)):
            raise DistrainError(
                f"--tune: {self.title} hands no values on to trials: its `spec` leaves out "
                "`backends.tuning.trial_variables`"
            )
        self._write(plan, spec, folder, {})

    def begin_trial(self, study: Path, trial: TrialStart, folder: Path) -> None:
        submission = Submission.read(study)
        values = {
            TRIAL_ARGUMENTS: json.dumps(list(trial.arguments)),
            TRIAL_NONCE: secrets.token_hex(4),
            TRIAL: str(trial.number),
            MLFLOW_RUN: mlflow_variable(folder, study=False),
        }
        replace(submission, spec=fill_placeholders(submission.spec, values), kernel=None).write(
            folder
        )
        self._begin(folder, rehearsed=submission.rehearse is not None)
        self._start_carrying(folder)

    def has_begun(self, folder: Path) -> bool:
        return (folder / STATUS_FILE).exists()

    def end_trials(self, study: Path) -> None:
        delete_variables(study)

    def submit(self, plan: RemotePlanT, folder: Path) -> None:
        """Raise CheckFailed, before anything leaves this machine, for what looks like a secret,
        and OptionError where nothing stands in for the service that is to be rehearsed."""
        self._write(plan, plan.spec(), folder, {MLFLOW_RUN: mlflow_variable(folder, study=False)})
        self._start_carrying(folder)

    def _start_carrying(self, folder: Path) -> None:
        """Start the carrier of a new run, or hand the run to a shared one. A run that has lost its
        carrier gets one for itself, as it may have brought the shared one down."""
        if self.shares_carriers:
            hand_over(folder)
        else:
            start_carrier(folder)

    def _write(
        self,
        plan: RemotePlanT,
        template: Spec,
        folder: Path,
        variables: Mapping[str, str],
        processes: Sequence[Process] = (),
    ) -> None:
        """Have in a folder all that is needed to carry that, with what is known by now in the place
        of its stand-ins; `processes` are those of the layout unless they are named. Raises as
        `submit` does."""
        from distrain_nb.program.program import report

        job = plan.job
        self._refuse_lacks(rehearsed=job.options.rehearsed)
        job.program.write(folder / PROGRAM_FOLDER)
        report("looking for secrets")
        refuse_secrets(folder / PROGRAM_FOLDER, _readable(job.options), job.allowed_secrets)
        refuse_secret_texts(_written(job), job.allowed_secrets)
        for upload in job.uploads:
            report(f"looking for secrets in {upload.source}")
            refuse_secret_files(upload.name, _paths(upload), job.allowed_secrets)
        kernel = Owner.of(os.getpid()) if job.waits else None
        processes = tuple(processes or processes_of(job.layout, plan.ranks_per_replica))
        spec = fill_placeholders(asdict(template), variables)
        Submission(self.name, spec, processes, kernel, job.options.rehearsal).write(folder)
        self._begin(folder, rehearsed=job.options.rehearsed)

    def _refuse_lacks(self, *, rehearsed: bool) -> None:
        """Raise DistrainError for all at once that this machine lacks."""
        needed = packages("packages", self.packages, self.extra)
        lacks = [] if needed.state is Health.GOOD else [f"{needed.result}; {needed.remedy}"]
        if rehearsed:
            lacks += lacks_for_rehearsal(self.name)
        if len(lacks) == 1:
            raise DistrainError(f"{self.title}: {lacks[0]}")
        if lacks:
            listed = "".join(f"\n- {lack}" for lack in lacks)
            raise DistrainError(f"{self.title} needs more on this machine:{listed}")

    def _begin(self, folder: Path, *, rehearsed: bool) -> None:
        phase = "starting the rehearsal" if rehearsed else "preparing to submit"
        progress = Progress(phase, since=time.time())
        Status(State.STARTING).enter(State.STARTING, phase, progress=progress).write(folder)

    def status(self, handle: Handle, folder: Path) -> Status:
        """Return the status in the folder. Start the carrier again if it is gone."""
        if handle.get("rehearsal") or not (folder / SUBMISSION_FILE).exists():
            return Status.current(folder)  # nobody can go on with it
        status = Status.read(folder)
        if not status.state.final and not status.answered_for and _may_start(folder):
            start_carrier(folder)
        return status

    def cancel(self, handle: Handle, folder: Path) -> None:
        request_cancel(folder)
        if (folder / STATUS_FILE).exists():
            self.status(handle, folder)  # starts a carrier where none is left to hear of it

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:
        """Ask again for what could not be fetched when the job had ended; what is still missing,
        and why. What a rehearsal left went with it."""
        if Journal.read(folder).missing and not handle.get("rehearsal"):
            start_carrier(folder).wait()
        return Journal.read(folder).missing


AnyRemoteBackend: TypeAlias = "RemoteBackend[Unknown, Unknown]"


def _written(job: Job[RemoteOptions]) -> dict[str, tuple[str, ...]]:
    """Return by option the values that a request, an image or names of a job may repeat, without
    those of `_readable`."""
    texts: dict[str, tuple[str, ...]] = {
        "name": (job.name,),
        "experiment": (job.experiment,),
        "data": job.data,
        "require": job.program.required,
        "args": (" ".join(job.program.arguments),),
        "layout": (str(job.layout),),
    }
    for field in fields(job.options):
        value = getattr(job.options, field.name)
        if field.name not in job.options.readable() and isinstance(value, str | tuple):
            texts[field.name] = (value,) if isinstance(value, str) else tuple(map(str, value))
    return texts


def _readable(options: RemoteOptions) -> dict[str, str]:
    """Return by name the values that anyone with access to the job can read."""
    texts = chain.from_iterable(options.readable().values())
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def _paths(upload: Upload) -> dict[str, Path]:
    return {file.name: file.path for file in Folder.of(Path(upload.source)).files}


def start_carrier(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that carries the run of a folder, and outlives this one."""
    process = start_detached(["-m", CARRIER, str(folder)], folder / CARRIER_LOG)
    (folder / LOCK_FILE).touch(0o600)
    return process


def _may_start(folder: Path) -> bool:
    try:
        last = (folder / LOCK_FILE).stat().st_mtime
    except FileNotFoundError:
        return True
    return not is_recent(last, START_AGAIN_AFTER_S)
