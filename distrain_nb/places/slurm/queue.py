"""The jobs of this user, asked for by one `squeue` for all processes that carry runs.

Each looks into one file; who finds it old asks anew, in a thread, so that a slow controller holds
nobody up. What is asked is paced by how long the answer takes.

Slurm's commands, and what they say where they refuse.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import socket
import subprocess
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.service import Unanswered
from distrain_nb.errors import DistrainError
from distrain_nb.secrets import is_secret
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

PATIENCE_S = 60.0

# Variables that say where the cluster is; all others of Slurm's are of the job that the notebook
# itself runs in, and would have their say in jobs that are submitted there.
_CLUSTER = frozenset(["SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_CONF_SERVER"])
_OF_SLURM = re.compile(r"(SLURM|SQUEUE|SINFO|SRUN|SCONTROL|SACCT)_")
_AWAY = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (refused|timed out)"
    r"|Zero Bytes were transmitted|communication (connection|shutdown) failure",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^(?:[a-z]+: )?(?:error: |fatal: )?", re.MULTILINE)
# The option of ours that is to blame, by the option of sbatch.
OURS = {
    "partition": "--partition",
    "constraint": "--constraint",
    "cpus-per-task": "--cpus",
    "mem": "--memory",
    "account": "--account",
    "qos": "--qos",
    "reservation": "--reservation",
    "time": "--timeout",
    "signal": "--signal-before",
    "nodes": "--workers",
    "gres": "--workers",
}
# What sbatch complains of, and the option that it calls so.
_BLAMED = (
    (r"partition", "partition"),
    (r"\(gres\)|--gres|\bgres\b|TRES", "gres"),
    (r"--time|time limit", "time"),
    (r"feature", "constraint"),
    (r"memory|--mem\b", "mem"),
    (r"account", "account"),
    (r"qos", "qos"),
    (r"reservation", "reservation"),
    (r"--cpus-per-task|cpu count", "cpus-per-task"),
    (r"node count|--nodes", "nodes"),
)


class Away(Unanswered):
    """The controller doesn't answer."""


class Refused(DistrainError):
    """A command of Slurm's failed, in its own words."""


def run(*command: str, patience: float = PATIENCE_S) -> str:
    """Return what a command of Slurm's prints. Raises Away where the controller doesn't answer in
    time, Refused for what the command says otherwise."""
    try:
        done = subprocess.run(
            command,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
        )
    except FileNotFoundError:
        raise Refused(
            f"{command[0]} is not on this machine's PATH: start the notebook where Slurm's "
            "commands are, such as on a login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise Away(f"{command[0]} got no answer within {patience:g} s") from None
    output, complaint = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    if done.returncode == 0:
        return output
    words = in_its_words(complaint or output)
    raise (Away if _AWAY.search(words) else Refused)(words)


def in_its_words(complaint: str) -> str:
    """Return what a command said, without the command's name before each line."""
    lines = [_PREFIX.sub("", line).strip() for line in complaint.splitlines()]
    return "; ".join(dict.fromkeys(filter(None, lines))) or "it gave no reason"


def refusal(words: str, script: Mapping[str, str]) -> str:
    """Return what sbatch said with the option that is to blame, where its words tell; `script` are
    the options of the job's script."""
    for pattern, name in _BLAMED:
        if re.search(pattern, words, re.IGNORECASE) and name in script:
            value = f"--{name}={script[name]}" if name in ("nodes", "gres") else script[name]
            return f"{OURS[name]} ({value}): sbatch refuses the job: {words}"
    return f"sbatch refuses the job: {words}"


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command gets, and jobs after it: no secrets, since the controller
    keeps a job's variables in a file."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _CLUSTER or not _OF_SLURM.match(name))
        and (name in _CLUSTER or not is_secret(name, value))
    }


FORMAT = "%i|%T|%r|%S|%j"
COMMAND = ("squeue", "--me", "--noheader", "--states=all", "--format", FORMAT)
# All that wait, of everybody, those first whose turn is first: asked for more seldom.
WAITING = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format", "%i|%P")
WAITING_EVERY_S = 15.0
SHARE = 5  # at most one part in so many of the time goes into asking
LONGEST_PAUSE_S = 20.0
_JOIN_S, _FIRST_S = 0.4, 15.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class QueuedJob:
    """A job: `state` and `reason` in Slurm's words, `start` in seconds since the epoch, 0 where it
    isn't known."""

    job: str
    state: str
    reason: str
    start: float
    name: str


@dataclass(frozen=True)
class JobList:
    """What the controller said when it was asked at `begun`. Of a later question, at `asked`, that
    it gave no answer to, `trouble` has what the command said; `took` is how long that went. `ahead`
    is how many jobs wait before one of this user's in its partition, as of `ranked`."""

    begun: float = 0.0
    rows: tuple[QueuedJob, ...] = ()
    asked: float = 0.0
    took: float = 0.0
    trouble: str = ""
    ahead: dict[str, int] = field(default_factory=dict)
    ranked: float = 0.0

    def row(self, job: str, name: str) -> QueuedJob | None:
        """Return the job of that number and name: a controller that lost its state counts anew."""
        return next((row for row in self.rows if (row.job, row.name) == (job, name)), None)

    def named(self, name: str) -> str:
        """Return the job of that name; empty if there is none."""
        return next((row.job for row in self.rows if row.name == name), "")


def read(text: str) -> tuple[QueuedJob, ...]:
    """Return the jobs in what `COMMAND` prints. A name may have any sign in it, so it is last."""
    rows = []
    for line in text.splitlines():
        parts = line.split("|", FORMAT.count("|"))
        if len(parts) > FORMAT.count("|"):
            job, state, reason, start, name = parts
            rows.append(QueuedJob(job, state, reason, moment(start), name))
    return tuple(rows)


def ahead(text: str, jobs: Collection[str]) -> dict[str, int]:
    """Return, of what `WAITING` prints, how many jobs come before each of one's own."""
    counts: dict[str, int] = {}
    counts_before = {}
    for line in text.splitlines():
        job, _, partition = line.partition("|")
        if job in jobs:
            counts_before[job] = counts.get(partition, 0)
        counts[partition] = counts.get(partition, 0) + 1
    return counts_before


def moment(text: str) -> float:
    """Return `2026-11-25T22:57:18`, a local time, in seconds; 0 for `N/A` and `Unknown`."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


@dataclass
class Queue:
    """The file in `folder`, no older than `pace` seconds as far as the controller answers."""

    folder: Path
    pace: float = 1.0
    _asking: threading.Thread | None = field(default=None, repr=False)

    def look(self, since: float = 0.0) -> JobList:
        """Return the newest answer; a question put before `since` counts as none, and is waited
        for, some seconds at most."""
        answer = self._read()
        if self._is_old(answer):
            self._ask()
            self._wait(_JOIN_S)
            answer = self._read()
        end = time.monotonic() + _FIRST_S
        while answer.begun < since and answer.asked < since and time.monotonic() < end:
            self._ask()
            self._wait(0.2)
            answer = self._read()
        return answer

    def _is_old(self, answer: JobList) -> bool:
        pause = min(max(self.pace, SHARE * answer.took), LONGEST_PAUSE_S)
        return not answer.asked <= time.time() < answer.asked + pause

    def _wait(self, seconds: float) -> None:
        if self._asking:
            self._asking.join(seconds)

    def _ask(self) -> None:
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask_alone, daemon=True)
            self._asking.start()

    def _ask_alone(self) -> None:
        """Ask, unless another process is just asking."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._path("lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.1)
                return
            self._put(self._read())

    def _put(self, before: JobList) -> None:
        asked, start = time.time(), time.monotonic()
        try:
            answer = self._answer(before, asked)
        except DistrainError as error:
            answer = replace(before, trouble=str(error))
        answer = replace(answer, asked=asked, took=time.monotonic() - start)
        replace_file(self._path("jobs"), json.dumps(asdict(answer)).encode())

    def _answer(self, before: JobList, asked: float) -> JobList:
        """Ask. Raises DistrainError."""
        answer = replace(before, begun=asked, rows=read(run(*COMMAND)), trouble="")
        waiting = {row.job for row in answer.rows if row.state == "PENDING"}
        new = waiting - before.ahead.keys()
        if waiting and (new or asked > before.ranked + WAITING_EVERY_S):
            counts = {**dict.fromkeys(waiting, 0), **ahead(run(*WAITING), waiting)}
            answer = replace(answer, ahead=counts, ranked=asked)
        return answer

    def _read(self) -> JobList:
        try:
            return fields.read(JobList, self._path("jobs"))
        except (FileNotFoundError, fields.Damaged):
            return JobList()

    def _path(self, suffix: str) -> Path:
        """Return a file of this host's for the cluster: clocks of hosts differ."""
        cluster = [os.environ.get(name, "") for name in ("SLURM_CONF", "SLURM_CLUSTERS")]
        key = hashlib.sha256("\n".join([socket.gethostname(), *cluster]).encode()).hexdigest()[:16]
        return self.folder / f"queue-{key}.{suffix}"
