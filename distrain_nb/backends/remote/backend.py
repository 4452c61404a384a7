"""The base of backends whose jobs run elsewhere."""

from __future__ import annotations

import json
import os
import secrets
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar, TypeAlias

from distrain_nb.backends.base import Backend, Handle
from distrain_nb.backends.checks import Health, packages
from distrain_nb.backends.job import Job
from distrain_nb.backends.plugins import lacks_for_rehearsal
from distrain_nb.backends.remote.carrier_start import may_start, start_carrier
from distrain_nb.backends.remote.options import RemoteOptionsT
from distrain_nb.backends.remote.plan import RemotePlanT
from distrain_nb.backends.remote.processes import processes_of
from distrain_nb.backends.remote.secret_search import refuse_job_secrets
from distrain_nb.backends.remote.service import Pace, Service
from distrain_nb.backends.remote.sharing import hand_over
from distrain_nb.backends.remote.submission import Journal, Spec, Submission, fill_placeholders
from distrain_nb.backends.remote.tracker import MLFLOW_RUN, mlflow_variable
from distrain_nb.backends.remote.variables import delete_variables
from distrain_nb.backends.tuning import TRIAL, TRIAL_ARGUMENTS, TRIAL_NONCE, TrialStart
from distrain_nb.errors import DistrainError
from distrain_nb.types import JsonObject, Unknown
from distrain_nb.worker.files.folder import PROGRAM_FOLDER, STATUS_FILE, SUBMISSION_FILE
from distrain_nb.worker.files.status import Owner, Process, Progress, State, Status, request_cancel


class RemoteBackend(Backend[RemoteOptionsT, RemotePlanT]):
    """Hands a run to a carrier, which outlives the kernel, and reads the run's folder.

    `pace` says how often the service is asked, and how long a log may take to be complete.
    `packages` are distributions that `submit` needs. `extra` is the extra of this package that
    installs them. With `shares_carriers`, one carrier may carry several runs, each in a thread.
    Their services have to allow that.
    """

    has_image = True
    pace: ClassVar[Pace] = Pace()
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = ""
    shares_carriers: ClassVar[bool] = False

    @abstractmethod
    def service(self, spec: JsonObject, endpoints: Mapping[str, str], folder: Path) -> Service:
        """Return the service for a `Spec` in JSON.

        *endpoints* are those of a rehearsal, or empty. The service may keep files in *folder*, the
        run's folder.
        """

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
                f"--tune: {self.title} passes no values to trials: its `spec` leaves out "
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
        """Write the run's folder and start its carrier.

        Raises CheckFailed if something looks like a secret: nothing has left this machine by then.
        Raises OptionError for a rehearsal of a service that has no stand-in.
        """
        self._write(plan, plan.spec(), folder, {MLFLOW_RUN: mlflow_variable(folder, study=False)})
        self._start_carrying(folder)

    def _start_carrying(self, folder: Path) -> None:
        """Start the carrier of a new run, or hand the run to a shared carrier.

        Only a new run: one whose carrier has died may have caused that death. `status` starts it a
        carrier for itself, so that it can't bring down other runs.
        """
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
        """Write everything into *folder* that a carrier needs.

        *variables* are the values that are known by now: they replace placeholders of *template*.
        *processes* are those of the layout unless they are given. Raises as `submit` does.
        """
        job = plan.job
        self._refuse_lacks(rehearsed=job.options.rehearsed)
        job.program.write(folder / PROGRAM_FOLDER)
        refuse_job_secrets(job, folder / PROGRAM_FOLDER)
        kernel = Owner.of(os.getpid()) if job.waits else None
        processes = tuple(processes or processes_of(job.layout, plan.ranks_per_replica))
        spec = fill_placeholders(asdict(template), variables)
        Submission(self.name, spec, processes, kernel, job.options.rehearsal).write(folder)
        self._begin(folder, rehearsed=job.options.rehearsed)

    def _refuse_lacks(self, *, rehearsed: bool) -> None:
        """Raise one DistrainError for everything that this machine lacks."""
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
        """Return the status in the folder. Start a new carrier if the last one has died."""
        if handle.get("rehearsal") or not (folder / SUBMISSION_FILE).exists():
            return Status.current(folder)  # no carrier can continue it
        status = Status.read(folder)
        if not status.state.final and not status.answered_for and may_start(folder):
            start_carrier(folder)
        return status

    def cancel(self, handle: Handle, folder: Path) -> None:
        request_cancel(folder)
        if (folder / STATUS_FILE).exists():
            self.status(handle, folder)  # starts a carrier if none is left to read the request

    def fetch(self, handle: Handle, folder: Path) -> Mapping[str, str]:
        """Fetch what was missing when the job had ended. Return what still is, with reasons.

        A rehearsal's service is gone with its files.
        """
        if Journal.read(folder).missing and not handle.get("rehearsal"):
            start_carrier(folder).wait()
        return Journal.read(folder).missing


AnyRemoteBackend: TypeAlias = "RemoteBackend[Unknown, Unknown]"
