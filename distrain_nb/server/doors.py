"""Which runs the server opens: those of its own store, whole and its user's."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from distrain_nb.errors import DistrainError, RunNotFound
from distrain_nb.run import Run, Store
from distrain_nb.run.facts import facts
from distrain_nb.run.streams import METRICS_FOLDER, RESOURCES_FOLDER
from distrain_nb.worker.log import LOG_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distrain_nb.run.facts import Facts

# An id of SQLite, as it prints one: nothing that could be part of a path.
RUN_ID = re.compile(r"[1-9][0-9]{0,17}")
READ_BELOW = (LOG_FILE, METRICS_FOLDER, RESOURCES_FOLDER)


def fingerprint(folder: Path) -> str:
    """What stands for a DISTRAIN_HOME in a query: the start of the hash of its path."""
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]


def open_run(store: Store, number: str, home: str = "") -> Run:
    """The run of that number. `home` is the fingerprint that the page knows, if it does.

    Raises RunNotFound, also for a run that is not ours to read: it says no more about those.
    """
    if home and home != fingerprint(store.folder):
        raise RunNotFound(f"this server serves the runs below {store.folder}, and not that one's")
    if not RUN_ID.fullmatch(number):
        raise RunNotFound(f"no run {number!r}; runs have numbers, as in 12")
    record = store.get(number)
    if not is_own(store.folder, record.folder):
        raise RunNotFound(f"no run {number!r} of this user")
    return Run(record)


def known_runs(store: Store) -> Iterator[Facts]:
    """What can be told of the runs, the newest first; nothing of one whose files are gone."""
    for record in store.all():
        try:
            yield facts(open_run(store, str(record.id)))
        except (DistrainError, FileNotFoundError):
            continue


def is_own(home: Path, folder: Path, user: int | None = None) -> bool:
    """Whether a run's folder stands below `home`, with all that is read, and is the user's."""
    user = os.getuid() if user is None else user
    place = home.resolve() / "runs" / folder.name
    for path in (place, *(place / name for name in READ_BELOW)):
        if path.resolve() != path:
            return False
        if path.exists() and path.stat().st_uid != user:
            return False
    return place.is_dir()
