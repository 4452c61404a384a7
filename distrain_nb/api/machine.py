"""Warnings about this machine: how long it lives, and how much disk space it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from distrain_nb.backends.notebooks import duration, place
from distrain_nb.findings import Finding, Severity
from distrain_nb.run import disk_usage

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend, AnyJob


def machine_findings(job: AnyJob, backend: AnyBackend) -> Iterator[Finding]:
    """Yield a disk that is nearly full, and a machine that may be shut down before the job has
    ended."""
    folder, free = disk_usage.free_bytes()
    if free < disk_usage.LITTLE:
        message = (
            f"only {free / disk_usage.GB:.1f} GB are free for runs in {folder}: %distrain clean "
            "says what can go"
        )
        yield Finding("machine.little-room", Severity.WARNING, "", message)
    is_here = backend.here or getattr(job.options, "rehearsed", False)
    limited = job.layout.timeout is not None
    # Nobody knows how long a run here takes that the cell waits for.
    if job.waits != is_here or limited:
        yield from _of_idleness(job, here=is_here)


def _of_idleness(job: AnyJob, *, here: bool) -> Iterator[Finding]:
    where = place(job.environ)
    if where is None or not where.idle_s:
        return
    longer = job.layout.timeout is None or job.layout.timeout > where.idle_s
    if here and (longer or not job.waits):
        then = (
            "a run on it ends then, whether or not a cell waits; a job in a cloud (--on) continues"
        )
    elif job.waits and longer:
        then = (
            "the cell may wait longer than that, and a job that is waited for is stopped with its "
            "kernel: without --wait it goes on, and %distrain attach shows it again"
        )
    else:
        return
    message = (
        f"this machine ({where.title}) is shut down after {duration(where.idle_s)} without "
        f"activity, by {where.idle_source}: {then}"
    )
    yield Finding("machine.idle", Severity.WARNING, "", message)
