"""What of this machine a job had better know: how long it is there, and how much room it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distrain_nb.backends.places import place
from distrain_nb.backends.places.place import duration
from distrain_nb.findings import Finding, Severity
from distrain_nb.run import room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.backends.base import AnyBackend, AnyJob


def about_machine(job: AnyJob, backend: AnyBackend) -> Iterator[Finding]:
    """Yield a disk that is nearly full, and a machine that may be shut down before the job has
    ended."""
    there, free = room.free_bytes()
    if free < room.LITTLE:
        message = (
            f"only {free / room.GB:.1f} GB are free where runs are kept, {there}: %distrain clean "
            "says what can go"
        )
        yield Finding("machine.little-room", Severity.WARNING, "", message)
    here = backend.here or getattr(job.options, "rehearsed", False)
    known = job.layout.timeout is not None
    if job.waits != here or known:  # how long a run here takes that is waited for, nobody knows
        yield from _of_idleness(job, here=here)


def _of_idleness(job: AnyJob, *, here: bool) -> Iterator[Finding]:
    found = place(job.environ)
    if found is None or not found.idle_s:
        return
    longer = job.layout.timeout is None or job.layout.timeout > found.idle_s
    if here and (longer or not job.waits):
        then = (
            "a run on it ends with it, whether or not a cell waits; one in a cloud (--on) goes on"
        )
    elif job.waits and longer:
        then = (
            "the cell may wait longer than that, and a job that is waited for is stopped with its "
            "kernel: without --wait it goes on, and %distrain attach shows it again"
        )
    else:
        return
    message = (
        f"this machine ({found.title}) is shut down after {duration(found.idle_s)} without "
        f"activity, by {found.idle_source}: {then}"
    )
    yield Finding("machine.idle", Severity.WARNING, "", message)
