"""Where a rehearsal's services are: a file in the folder of what is carried to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import REHEARSAL_FILE
from distrain_nb.worker.files.status import Owner


@dataclass(frozen=True)
class Services:
    """Where a rehearsal's services are, and the process that they end with."""

    endpoints: dict[str, str]
    owner: Owner

    @classmethod
    def read(cls, folder: Path) -> Services | None:
        """Return None before they are there, and when they have ended. Raises `fields.Damaged`."""
        try:
            return fields.read(cls, folder / REHEARSAL_FILE)
        except FileNotFoundError:
            return None


@contextmanager
def publish_services(folder: Path, endpoints: Mapping[str, str]) -> Iterator[None]:
    """Have the folder say where the services are that this process has."""
    path = folder / REHEARSAL_FILE
    replace_file(path, fields.encode(Services(dict(endpoints), Owner.of(os.getpid()))))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
