"""What ranks that `mpirun` starts leave in the run's folder for their host's supervisor."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Iterator

from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.status import Owner


def begin(folder: Path, process: int) -> None:
    """This process is that rank."""
    told = json.dumps(asdict(Owner.of(os.getpid())))
    replace_file(_file(folder, "begun", process), told.encode())


def succeed(folder: Path, process: int) -> None:
    """That rank has come to its end."""
    _file(folder, "succeeded", process).touch()


def has_succeeded(folder: Path, process: int) -> bool:
    """Whether that rank has come to its end."""
    return _file(folder, "succeeded", process).exists()


def living(folder: Path) -> Iterator[int]:
    """The process ids of the ranks that are at work."""
    for file in folder.glob("begun-*"):
        owner = Owner(**json.loads(file.read_text(encoding="utf-8")))
        if owner.alive:
            yield owner.pid


def _file(folder: Path, what: str, process: int) -> Path:
    return folder / ("%s-%d" % (what, process))
