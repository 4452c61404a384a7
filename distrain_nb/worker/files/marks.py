"""Marks that ranks of `mpirun` leave in the run's folder for their host's supervisor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator, Optional

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import BEGUN_FILE, SUCCEEDED_FILE
from distrain_nb.worker.files.status import Owner


def begin(folder: Path, process: int) -> None:
    """Note that this process has become the rank of that number."""
    replace_file(folder / BEGUN_FILE.format(process), fields.encode(Owner.of(os.getpid())))


def succeed(folder: Path, process: int) -> None:
    """Note that the program of that rank has ended without an error."""
    (folder / SUCCEEDED_FILE.format(process)).touch()


def has_succeeded(folder: Path, process: int) -> bool:
    """Return whether that rank has come to its end."""
    return (folder / SUCCEEDED_FILE.format(process)).exists()


def pid_of(folder: Path, process: int) -> Optional[int]:
    """Return the process id of that rank; None before it has begun, and when it has ended."""
    try:
        owner = fields.read(Owner, folder / BEGUN_FILE.format(process))
    except (OSError, fields.Damaged):
        return None
    return owner.pid if owner.alive else None


def living(folder: Path) -> Iterator[int]:
    """Yield the process ids of the ranks that are at work."""
    for file in folder.glob(BEGUN_FILE.format("*")):
        owner = fields.read(Owner, file)
        if owner.alive:
            yield owner.pid
