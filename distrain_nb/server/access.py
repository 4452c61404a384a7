"""Access to runs, studies and sessions: the server opens those of its own store and its user."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from typing import TYPE_CHECKING

from distrain_nb.config import fingerprint
from distrain_nb.errors import RunNotFound, StudyNotFound
from distrain_nb.run import Run, Store
from distrain_nb.run.numbered_folders import is_number
from distrain_nb.run.session import SessionHandle, session_folders
from distrain_nb.run.store import RUNS_FOLDER
from distrain_nb.study import Study
from distrain_nb.study.files import STUDIES_FOLDER, STUDY_FILE, TRIALS_FOLDER, study_folders
from distrain_nb.worker.files.folder import (
    ANNOTATION_FILE,
    EVENTS_FOLDER,
    LOG_FILE,
    PROGRAM_FOLDER,
    RESOURCES_FOLDER,
    STATUS_FILE,
)
from distrain_nb.worker.files.session import CELL_FILE, MEMORY_FILE, SESSION_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from distrain_nb.run.pages.query import Query

READ_BELOW = (ANNOTATION_FILE, LOG_FILE, EVENTS_FOLDER, PROGRAM_FOLDER, RESOURCES_FOLDER)
READ_OF_SESSIONS = (SESSION_FILE, STATUS_FILE, CELL_FILE, MEMORY_FILE)
READ_OF_STUDIES = (STUDY_FILE, STATUS_FILE, TRIALS_FOLDER)


def open_run(store: Store, number: str, home: str = "") -> Run:
    """Return the run of that number. *home* is the fingerprint of a store, if the page knows one.

    Raises RunNotFound. The error is the same for a run of another user: it reveals nothing.
    """
    check_home(store, home)
    if not is_number(number):
        raise RunNotFound(f"invalid run {number!r}: expected a number, such as 12")
    record = store.get(number)
    if not _may_be_opened(store.folder, record.folder):
        raise RunNotFound(f"no run {number!r} of this user")
    return Run(record)


def run_of(store: Store, query: Query, number: str) -> Run:
    """Return the run of that number for a page with this query. Raises RunNotFound."""
    return open_run(store, number, query.get("home", ""))


def own_runs(store: Store) -> Iterator[Run]:
    """Yield the runs that the server opens, the newest first."""
    for record in store.all():
        if _may_be_opened(store.folder, record.folder):
            yield Run(record)


def open_study(store: Store, number: str, home: str = "") -> Study:
    """Return the study of that number. *home* is as in `open_run`.

    Raises StudyNotFound, and RunNotFound for a page of another store.
    """
    check_home(store, home)
    study = _own_study(store.folder / STUDIES_FOLDER / number) if is_number(number) else None
    if study is None:
        raise StudyNotFound(f"no study {number!r} of this user")
    return study


def study_of(store: Store, query: Query, number: str) -> Study:
    """Return the study of that number for a page with this query. Raises StudyNotFound."""
    return open_study(store, number, query.get("home", ""))


def own_studies(store: Store) -> Iterator[Study]:
    """Yield the studies that the server opens, the newest first."""
    for folder in study_folders(store.folder).complete():
        study = _own_study(folder)
        if study is not None:
            yield study


def own_sessions(store: Store) -> Iterator[SessionHandle]:
    """Yield the sessions that the server opens, the newest first."""
    for folder in session_folders(store.folder):
        try:
            if _is_whole(folder.resolve(), READ_OF_SESSIONS, os.getuid()):
                yield SessionHandle(folder)
        except (OSError, RuntimeError):  # it is removed at this moment
            continue


def open_session(store: Store, name: str, home: str = "") -> SessionHandle:
    """Return the session of that name. Raises RunNotFound, also for one of another user."""
    check_home(store, home)
    for session in own_sessions(store):
        if session.name == name:
            return session
    raise RunNotFound(f"no session {name!r} of this user")


def check_home(store: Store, home: str) -> None:
    """Raise RunNotFound if a page has the fingerprint of another DISTRAIN_HOME."""
    if home and home != fingerprint(store.folder):
        raise RunNotFound(f"the page has another DISTRAIN_HOME than this server's, {store.folder}")


def _may_be_opened(home: Path, folder: Path) -> bool:
    """Return whether the user owns a run's folder; False if it can't be looked at."""
    try:
        return is_own(home, folder)
    except (OSError, RuntimeError):  # a link that leads nowhere
        return False


def is_own(home: Path, folder: Path, user: int | None = None) -> bool:
    """Return whether a run's folder is below *home*, and the user's with all files to read."""
    user = os.getuid() if user is None else user
    return _is_whole(home.resolve() / RUNS_FOLDER / folder.name, READ_BELOW, user)


def _own_study(folder: Path) -> Study | None:
    """Return the study in a folder; None if it is not there, or another user's."""
    resolved = folder.parents[1].resolve() / STUDIES_FOLDER / folder.name
    try:
        if not _is_whole(resolved, READ_OF_STUDIES, os.getuid()):
            return None
        return _study(resolved, (resolved / STUDY_FILE).stat().st_ino)
    except (OSError, RuntimeError):
        return None


@lru_cache(maxsize=10_000)  # a cache smaller than the list would keep no entry until the next poll
def _study(folder: Path, written: int) -> Study:  # noqa: ARG001
    """Return the one handle of a study, which knows when it has started a process.

    *written* tells studies of one folder apart: numbers may begin anew.
    """
    return Study(folder)


def _is_whole(place: Path, names: Iterable[str], user: int) -> bool:
    if place.resolve() != place or not place.is_dir() or place.stat().st_uid != user:
        return False
    return all(_may_be_read(place / name, user) for name in names)


def _may_be_read(path: Path, user: int) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True
    return status.st_uid == user and not stat.S_ISLNK(status.st_mode)
