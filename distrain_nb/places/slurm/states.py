"""Slurm's states and reasons, in words."""

from __future__ import annotations

import re

from distrain_nb.worker.files.status import State
from distrain_nb.worker.supervisor.retries import LOST, NO_RETRY, PREEMPTION

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
ENDS = {
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

_NOT_STARTED = re.compile(r"execve\(\): (.+): (.+)")
_OPTIONS = {"apptainer": "--container", "singularity": "--container"}


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


def start_failure(output: str) -> str:
    """Return in a line why `srun` has started no replica, by what it printed."""
    match = _NOT_STARTED.search(output)
    if match:
        option = _OPTIONS.get(match[1].rpartition("/")[2], "--python")
        return f"the nodes can't start {match[1]} ({option}): {match[2]}"
    lines = [line for line in output.splitlines() if not line.startswith("srun: ")]
    return f"no replica came up: {(lines or output.splitlines())[-1].strip()}"
