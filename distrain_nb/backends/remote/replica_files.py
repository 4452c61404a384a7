"""What replicas have left in the folder that they share: how they do, and what they are called.

A look at a large job asks for thousands of files, hardly any of which is new: one that is as it was
is not read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from distrain_nb.worker.files import failure
from distrain_nb.worker.files.fields import Damaged
from distrain_nb.worker.files.folder import LAUNCH_FILE, STATUS_FILE
from distrain_nb.worker.files.launch import Launch
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.replica import shared


def status_of(folder: Path) -> Status | None:
    """Return the status of a replica; None where there is none yet."""
    try:
        return _read_status(folder, _version(f"{folder}/{STATUS_FILE}"))
    except (FileNotFoundError, Damaged):
        return None


def labels_of(folder: Path) -> tuple[str, ...]:
    """Return what the processes of a replica are called. Raises FileNotFoundError, Damaged."""
    return _read_labels(folder, _version(f"{folder}/{LAUNCH_FILE}"))


def _version(path: str) -> tuple[int, int, int]:
    """Return what changes with each replacement of a file."""
    about = os.stat(path)  # noqa: PTH116 - a path would cost more than the question
    return about.st_ino, about.st_mtime_ns, about.st_size


@lru_cache(maxsize=1 << 14)
def folder_below(folder: Path, name: str) -> Path:
    """Return always the same path, which has its text by then."""
    return folder / name


@lru_cache(maxsize=1 << 14)
def _read_status(folder: Path, version: tuple[int, int, int]) -> Status:  # noqa: ARG001
    return Status.read(folder)


@lru_cache(maxsize=1 << 14)
def _read_labels(folder: Path, version: tuple[int, int, int]) -> tuple[str, ...]:  # noqa: ARG001
    return tuple(process.label for process in Launch.read(folder).processes)


def outcome_of(folder: Path) -> Status | None:
    """Return how a replica has ended; None where it has not, or its results aren't there yet."""
    status = status_of(folder)
    if not (status and status.state.final):
        return None
    is_partial = status.state is State.SUCCEEDED and not (folder / shared.DELIVERED).exists()
    return None if is_partial else status


def first_failure(statuses: Iterable[tuple[Path, Status | None]]) -> str:
    """Return the report of the replica that failed first, which may have ended after the others."""
    reports = {
        failure.of_cause(status.cause, _began(folder, status)): status.error
        for folder, status in statuses
        if status and status.state is State.FAILED
    }
    return reports[failure.decisive([*reports])] if reports else ""


def _began(folder: Path, status: Status) -> float:
    """Return when the first rank of a replica failed; of one that left no word, when it ended."""
    words = (failure.read(folder, process.index) for process in status.processes)
    return min((word.began for word in words if word), default=ended_at(status))


def ended_at(status: Status) -> float:
    return status.times.get(str(status.state), 0.0)


def own_files(folder: str, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files below a folder by their names; a link may lead anywhere, and is none."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        below = f"{name.rstrip('/')}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from own_files(entry.path, below)
        elif entry.is_file(follow_symlinks=False):
            yield below, entry.stat(follow_symlinks=False)
