"""Marks that ranks leave in the run's folder for their host's supervisor: those of `mpirun`, and
those that save when they are stopped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import (
    BEGUN_FILE,
    SAVED_FILE,
    STEPS_FILE,
    STOP_FILE,
    SUCCEEDED_FILE,
)
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


@dataclass(frozen=True)
class Stop:
    """How far a rank is that has asked to save when it is stopped.

    `saves` is whether it has given a function to `on_stop`; `began` and `saved` are times since the
    epoch; `error` is why the function failed; `agreed` is the call of `stopping` that was the last
    on all ranks. A rank that `ends_itself` isn't to be ended once it has saved; one that `waits`
    has saved, and ranks on other machines have not.
    """

    saves: bool = False
    began: Optional[float] = None
    saved: Optional[float] = None
    error: str = ""
    agreed: int = 0
    ends_itself: bool = False
    waits: bool = False

    @property
    def done(self) -> bool:
        """Whether the rank may be ended."""
        return (self.saved is not None or self.error != "") and not (self.ends_itself or self.waits)

    def write(self, folder: Path, process: int) -> None:
        replace_file(folder / STOP_FILE.format(process), fields.encode(self))

    @classmethod
    def read(cls, folder: Path, process: int) -> Optional[Stop]:
        """Return None where the rank hasn't asked."""
        try:
            return fields.read(cls, folder / STOP_FILE.format(process))
        except (OSError, fields.Damaged):
            return None


def forget_stops(folder: Path) -> None:
    """Remove what ranks of an earlier attempt have left."""
    for file in [*folder.glob(STOP_FILE.format("*")), folder / SAVED_FILE, folder / STEPS_FILE]:
        if file.exists():
            file.unlink()
