"""The SQLite file of the list of runs: opened for a moment, its errors say the way out.

It keeps a rollback journal rather than a write-ahead log, so that a list can be read on a disk that
is full or read-only.
"""

from __future__ import annotations

import errno
import fcntl
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distrain_nb.config import WAY_OUT, shortened
from distrain_nb.errors import StoreError

DATABASE_FILE = "runs.db"
LOCKED_AT_MOST_S = 10.0
_ROLLED_BACK_AT_MOST_S = 1.0  # a first write is small; who reads waits for other locks
# SQLite's own limit of a path is 512 bytes, which the journal's name shares.
_LONGEST_PATH = 500
# What takes a list from each version to the next; `PRAGMA user_version` is how many it has had. An
# earlier version of the package goes on reading and writing it: steps add tables, and columns that
# have a default.
_MIGRATIONS = (
    """
    CREATE TABLE IF NOT EXISTS runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        backend TEXT NOT NULL,
        created REAL NOT NULL,
        experiment TEXT NOT NULL,
        line TEXT NOT NULL,
        handle TEXT
    )
    """,
)
_REMEDIES = (
    ("no locks", "its file system has no locks: {way} on a local disk"),
    ("is locked", "another process has held it for {seconds:g} s: try again"),
    ("is full", "no space is left on the device: `%distrain delete` makes room, or {way}"),
    ("readonly", "it can't be written: make its folder writable, or {way}"),
    ("unable to open", "it can't be opened: make its folder writable, or {way}"),
    ("locking protocol", "its file system has no locks: {way} on a local disk"),
    ("disk I/O error", "its file system is full or broken: {way} on another disk"),
    ("not a database", "it is damaged: move it away, and the list is rebuilt from the folders"),
    ("malformed", "it is damaged: move it away, and the list is rebuilt from the folders"),
)


def is_made(folder: Path) -> bool:
    """Return whether there is a list. One that another process is just making has no bytes yet.

    One whose maker was killed in its first write has none either, once SQLite has rolled it back:
    to look into it does so. What can't be read is there, and its reader says why.
    """
    path = folder / DATABASE_FILE
    if not path.exists() or not path.stat().st_size:
        return False
    with suppress(sqlite3.Error), _connected(folder) as database:
        database.execute(f"PRAGMA busy_timeout = {int(_ROLLED_BACK_AT_MOST_S * 1000)}")
        database.execute("SELECT 1 FROM sqlite_master").fetchone()
    return path.stat().st_size > 0


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Change the list in one transaction. Raises StoreError, and then nothing has changed."""
    with _explained(folder), _connected(folder) as database:
        _leave_write_ahead_log(database)
        with database:
            database.execute("BEGIN IMMEDIATE")
            _migrate(database)
            yield database


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the list of runs to read it, without changing it. Raises StoreError."""
    with _explained(folder), _connected(folder) as database:
        try:
            database.execute("SELECT 1 FROM runs LIMIT 1")
        except sqlite3.OperationalError as error:
            if "readonly" not in str(error) and "unable to open" not in str(error):
                raise
            # A write-ahead log of an earlier version needs files of its own to be read.
            with _connected(folder, "?immutable=1") as unchanging:
                yield unchanging
        else:
            yield database


@contextmanager
def overwriting(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the list as `writing` does, but with the journal in memory: a full disk has no space for
    it."""
    with _explained(folder), _connected(folder) as database:
        _leave_write_ahead_log(database)
        database.execute("PRAGMA journal_mode = MEMORY")
        yield database


def _migrate(database: sqlite3.Connection) -> None:
    """Bring a list of an earlier version up to date; one of a later version stays as it is."""
    version = max(0, database.execute("PRAGMA user_version").fetchone()[0])
    for step in _MIGRATIONS[version:]:
        database.execute(step)
        version += 1
        database.execute(f"PRAGMA user_version = {version}")


@contextmanager
def _connected(folder: Path, query: str = "") -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(
        (folder / DATABASE_FILE).as_uri() + query if query else folder / DATABASE_FILE,
        timeout=LOCKED_AT_MOST_S,
        isolation_level=None,
        uri=bool(query),
    )
    database.row_factory = sqlite3.Row
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        yield database
    finally:
        database.close()


def _leave_write_ahead_log(database: sqlite3.Connection) -> None:
    """Remove the write-ahead log of earlier versions, unless another process has the list open."""
    with suppress(sqlite3.OperationalError):
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            database.execute("PRAGMA busy_timeout = 0")
            database.execute("PRAGMA journal_mode = DELETE")
    database.execute(f"PRAGMA busy_timeout = {int(LOCKED_AT_MOST_S * 1000)}")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Raise SQLite's errors as sentences."""
    path = folder / DATABASE_FILE
    if len(bytes(path)) > _LONGEST_PATH:
        raise StoreError(
            f"{shortened(str(folder))} is too long a path for SQLite, which takes "
            f"{_LONGEST_PATH} bytes; {WAY_OUT} with a shorter one"
        )
    try:
        yield
    except sqlite3.Error as error:
        message = str(error) if _has_locks(folder) else "no locks"
        remedies = (text for sign, text in _REMEDIES if sign in message)
        template = next(remedies, f"{error}; {WAY_OUT}")
        remedy = template.format(seconds=LOCKED_AT_MOST_S, way=WAY_OUT)
        raise StoreError(f"the list of runs, {path}: {remedy}") from None


def _has_locks(folder: Path) -> bool:
    """Tell whether the file system has locks. SQLite reports a missing lock as a held one."""
    try:
        # Not the list's own file: to close it would give up what another thread has locked.
        with tempfile.TemporaryFile(dir=folder) as probe:
            fcntl.lockf(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
    return True
