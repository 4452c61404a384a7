"""Which runs the server opens: those of its own store, whole and its user's."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING

from distrain_nb.errors import RunNotFound
from distrain_nb.run import Run, Store
from distrain_nb.worker.files.folder import EVENTS_FOLDER, LOG_FILE, RESOURCES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# An id of SQLite, as it prints one: nothing that could be part of a path.
RUN_ID = re.compile(r"[1-9][0-9]{0,17}")
READ_BELOW = (LOG_FILE, EVENTS_FOLDER, RESOURCES_FOLDER)


def fingerprint(folder: Path) -> str:
    """What stands for a DISTRAIN_HOME in a query: the start of the hash of its path."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]


def open_run(store: Store, number: str, home: str = "") -> Run:
    """The run of that number. `home` is the fingerprint that the page knows, if it does.

    Raises RunNotFound, also for a run that is not ours to read: it says no more about those.
    """
    check_home(store, home)
    if not RUN_ID.fullmatch(number):
        raise RunNotFound(f"invalid run {number!r}: expected a number, such as 12")
    record = store.get(number)
    if not _may_be_opened(store.folder, record.folder):
        raise RunNotFound(f"no run {number!r} of this user")
    return Run(record)


def own_runs(store: Store) -> Iterator[Run]:
    """The runs that the server opens, the newest first."""
    for record in store.all():
        if _may_be_opened(store.folder, record.folder):
            yield Run(record)


def check_home(store: Store, home: str) -> None:
    """Raises RunNotFound for a page that knows another DISTRAIN_HOME by its fingerprint."""
    if home and home != fingerprint(store.folder):
        raise RunNotFound(f"the page has another DISTRAIN_HOME than this server's, {store.folder}")


def _may_be_opened(home: Path, folder: Path) -> bool:
    """Whether it is our own; one that is gone is nobody's, and can be taken off the list."""
    try:
        return is_own(home, folder) or not os.path.lexists(folder)
    except (OSError, RuntimeError):  # a link that leads nowhere
        return False


def is_own(home: Path, folder: Path, user: int | None = None) -> bool:
    """Whether a run's folder stands below `home`, with all that is read, and is the user's."""
    user = os.getuid() if user is None else user
    place = home.resolve() / "runs" / folder.name
    if place.resolve() != place or not place.is_dir() or place.stat().st_uid != user:
        return False
    return all(_may_be_read(place / name, user) for name in READ_BELOW)


def _may_be_read(path: Path, user: int) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return True
    return found.st_uid == user and not stat.S_ISLNK(found.st_mode)
