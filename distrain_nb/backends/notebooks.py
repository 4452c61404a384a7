"""Managed notebooks: which one this is, and when its machine is shut down.

Nothing here slows a machine that is in no such place: a service is asked only where a file or a
variable says that there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distrain_nb import installed
from distrain_nb.findings import Finding, Severity

# Colab Enterprise sets the first too, and its machines are the user's.
COLAB, PRODUCT, COLAB_ENTERPRISE = "COLAB_RELEASE_TAG", "VERTEX_PRODUCT", "COLAB_ENTERPRISE"
# `Interactive`, or `Batch` for a version that is saved.
KAGGLE = "KAGGLE_KERNEL_RUN_TYPE"

GROUP = "distrain_nb.notebooks"


@dataclass(frozen=True)
class NotebookPlace:
    """`title` is what people call it, with what there is to say of its kind and version; `idle_s`
    is after how many seconds without activity its machine is shut down, None where it never is or
    nobody knows; `idle_source` is where that is set."""

    title: str
    idle_s: float | None = None
    idle_source: str = ""


def duration(seconds: float) -> str:
    """Return a time in hours, or else in minutes."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h" if hours and not minutes else f"{round(seconds / 60)} min"


def hosted_elsewhere(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Kaggle or Colab; None elsewhere. What ends their sessions is told by no variable."""
    if environ.get(KAGGLE):
        return NotebookPlace(f"Kaggle, {environ[KAGGLE].lower()} session")
    if environ.get(COLAB) and environ.get(PRODUCT) != COLAB_ENTERPRISE:
        return NotebookPlace("Colab")
    return None


def place(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Return the managed notebook that this is; None elsewhere."""
    looks = (hosted_elsewhere, *installed.loaded(GROUP))
    return next(filter(None, (look(environ) for look in looks)), None)


def idle_findings(
    environ: Mapping[str, str], timeout: float | None, *, waits: bool, here: bool
) -> Iterator[Finding]:
    """Yield a warning where the machine may be shut down before a job has ended."""
    where = place(environ)
    if where is None or not where.idle_s:
        return
    longer = timeout is None or timeout > where.idle_s
    if here and (longer or not waits):
        then = (
            "a run on it ends then, whether or not a cell waits; a job in a cloud (--on) continues"
        )
    elif waits and longer:
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
