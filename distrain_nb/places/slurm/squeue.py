"""The jobs of a cluster, as `squeue` prints them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

FORMAT = "%i|%T|%r|%S|%j"
COMMAND = ("squeue", "--me", "--noheader", "--states=all", "--format", FORMAT)
# All that wait, of everybody, those first whose turn is first: asked for more seldom.
WAITING = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format", "%i|%P")


@dataclass(frozen=True)
class QueuedJob:
    """A job: `state` and `reason` in Slurm's words, `start` in seconds since the epoch, 0 where it
    isn't known."""

    job: str
    state: str
    reason: str
    start: float
    name: str


def read(text: str) -> tuple[QueuedJob, ...]:
    """Return the jobs in what `COMMAND` prints. A name may have any sign in it, so it is last."""
    rows = []
    for line in text.splitlines():
        parts = line.split("|", FORMAT.count("|"))
        if len(parts) > FORMAT.count("|"):
            job, state, reason, start, name = parts
            rows.append(QueuedJob(job, state, reason, epoch_seconds(start), name))
    return tuple(rows)


def epoch_seconds(text: str) -> float:
    """Return `2026-11-25T22:57:18`, a local time, in seconds; 0 for `N/A` and `Unknown`."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
