"""One job of Slurm's, whose nodes share its folder with this machine.

Slurm's states and reasons, in words.
"""

from __future__ import annotations

import re
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
from distrain_nb.places.slurm.commands import ControllerUnreachable, QueuedJob, Refused, refusal
from distrain_nb.places.slurm.controller import Controller, controller
from distrain_nb.places.slurm.plan import ENDED, JOB, JOB_OUTPUT, SCRIPT, SlurmSpec, counted
from distrain_nb.places.slurm.queue import Queue
from distrain_nb.types import JsonObject
from distrain_nb.worker.files.status import State
from distrain_nb.worker.supervisor.retries import LOST, NO_RETRY, PREEMPTION, RunAttempt

if TYPE_CHECKING:
    from distrain_nb.image import Listener

WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"])
_LIVE = {
    "CONFIGURING": (State.STARTING, "the nodes are being made ready"),
    "RUNNING": (State.RUNNING, ""),
    "SUSPENDED": (State.RUNNING, "suspended in Slurm"),
    "STOPPED": (State.RUNNING, "stopped in Slurm"),
    "RESIZING": (State.RUNNING, ""),
    "SIGNALING": (State.RUNNING, ""),
    "STAGE_OUT": (State.RUNNING, "staging out"),
    "COMPLETING": (State.RUNNING, "ending"),
}
_ENDS = {
    "TIMEOUT": "the job reached its time limit and was ended by Slurm: give it more by --timeout",
    "NODE_FAIL": "a node failed, and Slurm ended the job",
    "PREEMPTED": "a job of higher priority took the nodes (preempted)",
    "OUT_OF_MEMORY": "the job used more memory than it had asked for: give it more by --memory",
    "DEADLINE": "the job could not end before its deadline",
    "BOOT_FAIL": "a node could not be started",
    "REVOKED": "the job runs in another cluster of the federation",
}
_RETRIED = {
    "NODE_FAIL": LOST, "BOOT_FAIL": LOST, "PREEMPTED": PREEMPTION,
    "TIMEOUT": NO_RETRY, "DEADLINE": NO_RETRY,
}  # fmt: skip
# What srun and slurmstepd write when Slurm ends a job.
_CAUSES = (
    ("DUE TO TIME LIMIT", "TIMEOUT"),
    ("DUE TO NODE FAILURE", "NODE_FAIL"),
    ("Node failure on", "NODE_FAIL"),
    ("DUE TO PREEMPTION", "PREEMPTED"),
    ("oom-kill event", "OUT_OF_MEMORY"),
    ("oom_kill event", "OUT_OF_MEMORY"),
)
_CANCELLED = re.compile(r"\*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT")
# What srun writes before when a task has failed and it ends the others: --kill-on-bad-exit.
_ENDS_OTHERS = re.compile(r"srun: error: \S+: tasks? \S+: .*\n(.*\n)*?srun: .*Terminating StepId")
_WHY = {
    "None": "",
    "Resources": "waiting for nodes",
    "Priority": "waiting behind jobs of higher priority",
    "Dependency": "waiting for another job",
    "BeginTime": "waiting for its begin time",
    "JobHeldUser": "held: `scontrol release` lets it go",
    "JobHeldAdmin": "held by an administrator",
    "Licenses": "waiting for licenses",
    "Reservation": "waiting for its reservation to begin",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition takes no jobs at present",
    "PartitionNodeLimit": "it asks for more nodes than the partition gives a job",
    "PartitionConfig": "it asks for what the partition doesn't give",
    "PartitionTimeLimit": "it asks for more time than the partition gives a job",
    "BadConstraints": "no node has what it asks for",
    "NodeDown": "a node is down",
    "Prolog": "the nodes are being made ready",
    "Cleaning": "the nodes are being cleaned up after its last attempt",
    "JobArrayTaskLimit": "waiting for other tasks of its array",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its QOS is not valid",
}
_BY_KIND = (
    (re.compile(r"ReqNodeNotAvail"), "nodes that it needs are not available"),
    (re.compile(r"Nodes required for job are"), "nodes that it needs are down or reserved"),
    (re.compile(r"QOS.*(Max|Grp|Limit)"), "a limit of the QOS is reached"),
    (re.compile(r"Assoc.*(Max|Grp|Limit)"), "a limit of the account is reached"),
)


def live_state(state: str) -> tuple[State, str] | None:
    """Return the state and the phase of a job that hasn't ended; None for one that has."""
    return (State.QUEUED, "waiting in the queue") if state in WAITING else _LIVE.get(state)


def accounting_state(text: str) -> str:
    """Return how a job has ended by what `sacct` prints of its state, such as "CANCELLED by 1000";
    empty where the accounting has not heard of the end, which the controller tells it later."""
    state = text.partition("\n")[0].partition(" ")[0]
    return "" if live_state(state) else state


def retry_cause(state: str) -> str:
    """Return the cause by which a job that ended so is sent again; empty for none."""
    return _RETRIED.get(state, "")


def cause_in(output: str) -> str:
    """Return the state that a job's output gives away, such as TIMEOUT; empty where it has none."""
    for words, state in _CAUSES:
        if words in output:
            return state
    by_srun = _ENDS_OTHERS.search(output)
    for cancelled in _CANCELLED.finditer(output):
        if cancelled[1] == "JOB" or by_srun is None or cancelled.start() < by_srun.end():
            return "CANCELLED"
    return ""


def reason_text(reason: str) -> str:
    """Return why a job waits, with Slurm's own name for it where that says more."""
    words = reason.replace("_", " ")
    if words in _WHY:
        return _WHY[words]
    for pattern, text in _BY_KIND:
        if pattern.search(words):
            return f"{text} ({words})"
    return words


_NOT_STARTED = re.compile(r"execve\(\): (.+): (.+)")
_OPTIONS = {"apptainer": "--container", "singularity": "--container"}


def start_failure(output: str) -> str:
    """Return in a line why `srun` has started no replica, by what it printed."""
    match = _NOT_STARTED.search(output)
    if match:
        option = _OPTIONS.get(match[1].rpartition("/")[2], "--python")
        return f"the nodes can't start {match[1]} ({option}): {match[2]}"
    lines = [line for line in output.splitlines() if not line.startswith("srun: ")]
    return f"no replica came up: {(lines or output.splitlines())[-1].strip()}"


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
        ending = _ENDS.get(state, "")
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
