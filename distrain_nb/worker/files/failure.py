"""The failure of a rank: written by the rank while it still can, and read by its supervisor."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterable, NamedTuple, Optional, Sequence

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.cause import EXIT, MEMORY, PROGRAM, Cause
from distrain_nb.worker.files.folder import FAILURE_FILE
from distrain_nb.worker.files.reserve import use_reserve
from distrain_nb.worker.files.status import Process

# A process's sockets close before its parent hears of its death, so a peer's "connection closed"
# can be written down a moment earlier than the death that caused it.
DEATH_IS_SEEN_LATE_S = 0.25

# Nothing that a program does wrong ends in these: another rank's error follows from them.
_FROM_OUTSIDE = frozenset(["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGPWR", "SIGXCPU"])
_SHELLS = 128  # what a shell adds to the number of a signal

# The additions to the description of a death in a report.
_DETAIL = re.compile(r" \(it had taken .*\)$| and left no traceback$|^it |; what failed is .*$")

# The text of PyTorch's exception for an assertion on a GPU.
_ASSERTED = "device-side assert triggered"

# The process of a failure that no rank caused.
LAUNCHER = -1

# Most characters about a rank that failed because another one had.
LONGEST_OUTCOME = 160


@dataclass(frozen=True)
class Failure:
    """`began` is in seconds since the epoch; `traceback` is empty where there is none.

    `label` says who failed where that is no process of this host. `status` is the exit status, as
    subprocess has it; None for an exception of the program's. `kind` is one of `cause`'s names.
    """

    process: int
    began: float
    summary: str
    traceback: str = ""
    label: str = "the launcher"
    status: Optional[int] = None
    kind: str = PROGRAM

    def because(self, assertion: str) -> Failure:
        """Return it with the assertion that has failed on its GPU, if that is what it tells of."""
        if not assertion or _ASSERTED not in self.summary:
            return self
        return replace(self, summary=f"{self.summary}: {assertion}")

    def write(self, folder: Path) -> None:
        """Leave word of it; on a full disk the exit status has to do."""
        path = folder / FAILURE_FILE.format(self.process)
        try:
            use_reserve(path, fields.encode(self, ensure_ascii=False))
        except OSError as error:
            print(f"can't write {path}: {error}", file=sys.stderr)


def read(folder: Path, process: int) -> Optional[Failure]:
    """Read the failure that a process wrote; None if it could not write one."""
    try:
        return fields.read(Failure, folder / FAILURE_FILE.format(process))
    except (FileNotFoundError, fields.Damaged):
        return None


class Memory(NamedTuple):
    """Memory of a process that has died: its peak in bytes, and how many bytes were `left` to it
    `ago` seconds before, if known."""

    peak: int
    left: Optional[int] = None
    ago: float = 0.0

    def __str__(self) -> str:
        had = f"it had taken {_size(self.peak)} of memory"
        if self.left is None:
            return had
        return f"{had}; {_size(self.left)} were left {self.ago:.1f} s before"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def of_exit(process: int, status: int, out_of_memory: bool, memory: Memory) -> Failure:
    """Return the failure of a process that left no word, from its wait status. If the machine has
    run out of memory since the process began, a SIGKILL is taken for the kernel's: it sends no
    other signal then."""
    killed_for_memory = out_of_memory and cause_of(status) == "SIGKILL"
    summary = describe_exit(status, killed_for_memory)
    if status == -signal.SIGKILL:
        summary += f" ({memory})"
    kind = MEMORY if killed_for_memory else EXIT
    began = time.time() - DEATH_IS_SEEN_LATE_S
    return Failure(process, began, summary, status=status, kind=kind)


def of_launcher(status: int) -> Failure:
    """Return the failure of what starts the ranks of several hosts, when none of this host's
    failed."""
    summary = f"it exited with status {status}; the log of the failed rank's host has the error"
    return Failure(LAUNCHER, time.time(), summary, status=status, kind=EXIT)


def describe_exit(status: int, killed_for_memory: bool = False) -> str:
    """Return a wait status in words; `status` is negative for a signal, as in subprocess."""
    if status >= 0:
        return f"exited with status {status} and left no traceback"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if killed_for_memory:
        return f"killed by {name}: the machine, or its container, ran out of memory"
    return f"killed by {name}"


def exit_status(wait_status: int) -> int:
    """Return the exit status as `subprocess` does: negative for a signal."""
    if os.WIFSIGNALED(wait_status):
        return -os.WTERMSIG(wait_status)
    return os.WEXITSTATUS(wait_status)


def cause_of(status: Optional[int]) -> str:
    """Return the name of the signal that an exit status stands for, negative or as a shell has it,
    else the status; empty for None."""
    if status is None:
        return ""
    try:
        return signal.Signals(-status if status < 0 else status - _SHELLS).name
    except ValueError:
        return str(status)


def decisive(failures: Sequence[Failure]) -> Failure:
    """Return the failure that the others followed from. A rank may hear of another's death before
    we do, so what came from outside precedes what a program says."""
    outside = [failure for failure in failures if cause_of(failure.status) in _FROM_OUTSIDE]
    return first(outside or failures)


def of_cause(cause: Optional[Cause], began: float) -> Failure:
    """Return the failure of another host that has a cause, as far as that says; an earlier version
    of the package says nothing, which counts as an error of the program."""
    of = cause or Cause()
    label = of.subject or "a rank"
    return Failure(LAUNCHER, began, of.summary, label=label, status=of.status, kind=of.kind)


def first(failures: Iterable[Failure]) -> Failure:
    """Return the one that the others followed from."""
    return min(failures, key=lambda failure: failure.began)


def cause_among(failures: Sequence[Failure], processes: Sequence[Process]) -> Cause:
    """Return the cause of a run that failed so."""
    failed = decisive(failures)
    return Cause(failed.kind, _label(failed, processes), failed.status, failed.summary)


def report(failures: Sequence[Failure], processes: Sequence[Process]) -> str:
    """Return the first failure whole, then a line for each other process."""
    decided = decisive(failures)
    rest = [p for p in processes if p.index != decided.process]
    failed = "failed first" if rest else "failed"
    head = f"{_label(decided, processes)} {failed}: {decided.summary}"
    lines = [f"{p.label}: {_short(p.outcome)}" for p in rest]
    return "\n".join([head, *decided.traceback.splitlines(), *lines])


def headline(failed: Failure, processes: Sequence[Process]) -> str:
    """Return who has failed and how, in a few words: `rank 1 was killed by SIGKILL`."""
    summary = _DETAIL.sub("", failed.summary)
    return f"{_label(failed, processes)} {'was ' * summary.startswith('killed')}{summary}"


def _short(outcome: str) -> str:
    return outcome if len(outcome) <= LONGEST_OUTCOME else outcome[:LONGEST_OUTCOME] + " …"


def _label(failed: Failure, processes: Sequence[Process]) -> str:
    return next((p.label for p in processes if p.index == failed.process), failed.label)
