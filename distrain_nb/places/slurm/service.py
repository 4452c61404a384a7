"""One job of Slurm's, whose nodes share its folder with this machine."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.service import Gone, Observed
from distrain_nb.backends.remote.shared_folder import SharedFolderService
from distrain_nb.config import private_home
from distrain_nb.errors import DistrainError
from distrain_nb.places.slurm.commands import ControllerUnreachable, Refused
from distrain_nb.places.slurm.controller import Controller, controller
from distrain_nb.places.slurm.plan import ENDED, JOB, JOB_OUTPUT, SCRIPT, SlurmSpec, counted
from distrain_nb.places.slurm.queue import Queue
from distrain_nb.places.slurm.refusal import refusal
from distrain_nb.places.slurm.squeue import QueuedJob
from distrain_nb.places.slurm.states import (
    ENDS,
    accounting_state,
    cause_in,
    live_state,
    reason_text,
    retry_cause,
    start_failure,
)
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.status import State
from distrain_nb.worker.supervisor.retries import RunAttempt

if TYPE_CHECKING:
    from distrain_nb.image import Listener

CANCEL = "cancel"
# What the replicas leave may be seen here later than the job's end.
LEFT_WITHIN_S = 15.0
_IN_TURN = frozenset(["Resources", "Priority"])  # reasons of a job that waits for its turn
_LAST_WORDS = 2000


@dataclass(frozen=True)
class SlurmService(SharedFolderService[SlurmSpec]):
    """`since` is when this process began to look at the job: what was asked before may not know
    it."""

    since: float = field(default_factory=time.time)
    _times: dict[str, float] = field(default_factory=dict)

    @property
    def controller(self) -> Controller:
        return controller(self.spec.url, self.spec.token_file)

    @cached_property
    def queue(self) -> Queue:
        return Queue(private_home() / "slurm-queue", self.controller)

    def stage(self, program: Path, tell: Listener) -> JsonObject:
        staged = super().stage(program, tell)
        (self.folder / SCRIPT).write_text(self.spec.script)
        return staged

    def create(self, request: JsonObject) -> str:  # noqa: ARG002
        """Submit the script. Raises Refused in Slurm's own words."""
        options = {**self.spec.options, "job-name": self._name}
        try:
            job = self.controller.submit(self.folder / SCRIPT, options)
        except Refused as error:
            raise Refused(refusal(str(error), options, self.controller.name)) from None
        self._times[JOB] = time.time()
        return job

    def prepare_attempt(self, request: JsonObject, attempt: RunAttempt, retries: int) -> JsonObject:
        """Forget how the last job has ended: the next one has another name."""
        request = super().prepare_attempt(request, attempt, retries)
        for name in (JOB, ENDED):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (self.folder / JOB_OUTPUT).replace(self.folder / f"{JOB_OUTPUT}.{attempt.number - 1}")
        self._times.clear()
        return request

    def find(self, request: JsonObject) -> str:  # noqa: ARG002
        """Look for the job by its name, which no other job has. Raises ControllerUnreachable."""
        since = time.time()
        answer = self.queue.look(since)
        job = answer.named(self._name) or self._own_number()
        if not job and answer.begun < since:
            raise ControllerUnreachable(answer.trouble or "Slurm's controller doesn't answer")
        return job

    def observe(self, job: str) -> Observed:
        outcome = self.outcome()
        if outcome and outcome.state is State.SUCCEEDED:
            return outcome
        since = max(self.since, self._times.get(JOB, 0.0))
        answer = self.queue.look(since)
        row = answer.row(job, self._name)
        if row is None and answer.begun >= since:
            return self._forgotten(job, outcome)
        if answer.trouble and outcome:
            return outcome
        away = f"Slurm's controller doesn't answer, the job is not touched: {answer.trouble}"
        if row is None:
            return Observed(self._likely, reason=away)
        ahead = answer.ahead.get(job, 0) if row.reason in _IN_TURN else 0
        return self._of(row, outcome, away if answer.trouble else "", ahead)

    def cancel(self, job: str) -> None:
        """Have Slurm end it: SIGTERM, and SIGKILL after its KillWait."""
        (self.folder / CANCEL).touch()
        self.controller.cancel(job)

    @property
    def _name(self) -> str:
        name, attempt = self.spec.options["job-name"], self.attempt
        return name if attempt < 2 else f"{name}-{attempt}"

    @property
    def _likely(self) -> State:
        """Return the state by what lies in the folder, while nobody answers."""
        return State.RUNNING if (self.folder / JOB).exists() else State.QUEUED

    @property
    def _shell_failed(self) -> bool:
        with suppress(FileNotFoundError):
            return (self.folder / ENDED).read_text().strip() not in ("", "0")
        return False

    def _own_number(self) -> str:
        """Return the number that the job itself has written down."""
        with suppress(FileNotFoundError):
            return (self.folder / JOB).read_text().strip()
        return ""

    def _of(self, row: QueuedJob, outcome: Observed | None, trouble: str, ahead: int) -> Observed:
        live = live_state(row.state)
        if live is None:
            return self._ended(row.state, outcome)
        state, phase = live
        if row.state == "COMPLETING":
            cause = cause_in(self._output_tail())
            if cause or outcome:
                return self._ended(cause, outcome)
        waits = state is State.QUEUED
        before = f"{counted(ahead, 'job')} before it" if ahead else ""
        why = filter(None, (reason_text(row.reason), before)) if waits else ()
        reason = trouble or "; ".join(why) or ("" if waits else self.failing())
        return Observed(state, phase, reason=reason, expected=row.start if waits else 0.0)

    def _ended(self, state: str, outcome: Observed | None) -> Observed:
        """Return how a job has ended, of which Slurm says that state."""
        if state == "CANCELLED":
            ours = (self.folder / CANCEL).exists()
            return Observed(State.CANCELLED, error="" if ours else "cancelled in Slurm, by scancel")
        ending = ENDS.get(state, "")
        if ending:
            error = _joined(ending, outcome.error if outcome else "")
            return Observed(State.FAILED, error=error, cause=retry_cause(state))
        if outcome:
            return outcome
        output = self._output_tail()[-_LAST_WORDS:].strip()
        if output and self._shell_failed and not self._folders():
            # The shell that waited for `srun` has ended, and no replica has come as far as to make
            # its folder: none will.
            return Observed(State.FAILED, error=f"{start_failure(output)}\n{output}")
        if time.time() < self._times.setdefault(ENDED, time.time()) + LEFT_WITHIN_S:
            return Observed(State.RUNNING, "ending")
        as_said = f"the job has ended, Slurm says {state}" if state else "the job has ended"
        unsaid = f"{as_said}, but not all replicas have said how"
        return Observed(State.FAILED, error=f"{unsaid}\n{output}" if output else unsaid)

    def _forgotten(self, job: str, outcome: Observed | None) -> Observed:
        """Return how a job has ended that the controller doesn't know any more."""
        state = cause_in(self._output_tail()) or self._accounted(job)
        if state or outcome or (self.folder / ENDED).exists():
            return self._ended(state, outcome)
        began = "it left no word of its end" if (self.folder / JOB).exists() else "it never began"
        raise Gone(f"Slurm knows no job {job} any more, and {began}: it was cancelled, or lost")

    def _accounted(self, job: str) -> str:
        """Return the state that the accounting has; empty where there is none."""
        with suppress(DistrainError):
            return accounting_state(self.controller.accounted(job))
        return ""

    def _output_tail(self) -> str:
        """Return what srun and the job's shell have said, the last of it."""
        with suppress(FileNotFoundError):
            return (self.folder / JOB_OUTPUT).read_bytes()[-65536:].decode(errors="replace")
        return ""


def _joined(ending: str, error: str) -> str:
    return f"{ending}\n{error}" if error else ending
