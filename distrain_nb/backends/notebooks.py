"""Where the notebook runs: what its machine tells of itself, for all who ask.

Nothing here slows a machine that is in no such place: a service is asked only where a file or a
variable says that there is one.

Who has not answered: not asked again at once, so that a place that is silent slows nothing.

Notebooks on machines that belong to the host of the notebook, and to no project of the user.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from distrain_nb import installed
from distrain_nb.findings import Finding, Severity

AGAIN_S = 300.0

_failures: dict[Hashable, float] = {}


def note_failure(of: Hashable) -> None:
    """Nobody answers, or not to us."""
    _failures[of] = time.monotonic()


def has_failed(of: Hashable) -> bool:
    """Return whether that was so within the last minutes."""
    return of in _failures and time.monotonic() < _failures[of] + AGAIN_S


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


# Colab Enterprise sets the first too, and its machines are the user's.
COLAB, PRODUCT, COLAB_ENTERPRISE = "COLAB_RELEASE_TAG", "VERTEX_PRODUCT", "COLAB_ENTERPRISE"
# `Interactive`, or `Batch` for a version that is saved.
KAGGLE = "KAGGLE_KERNEL_RUN_TYPE"


def hosted_elsewhere(environ: Mapping[str, str]) -> NotebookPlace | None:
    """Kaggle or Colab; None elsewhere. What ends their sessions is told by no variable."""
    if environ.get(KAGGLE):
        return NotebookPlace(f"Kaggle, {environ[KAGGLE].lower()} session")
    if environ.get(COLAB) and environ.get(PRODUCT) != COLAB_ENTERPRISE:
        return NotebookPlace("Colab")
    return None


GROUP = "distrain_nb.notebooks"


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
