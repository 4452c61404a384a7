"""The list of runs: one SQLite file that every kernel of the user shares, and a folder for each.

What a run's folder has is enough to list it again, should the file be lost.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from distrain_nb.config import WAY_OUT, home, own_home, private_home
from distrain_nb.errors import OptionError, RunNotFound, RunUnreadable, StoreError, did_you_mean
from distrain_nb.run.database import is_made, overwriting, reading, writing
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import private_folder, replace_file
from distrain_nb.worker.files.folder import OPTIONS_FILE, RECORD_FILE, SCHEMA
from distrain_nb.worker.files.status import Owner, State, Status

RUNS_FOLDER = "runs"
REMOVE_ATTEMPTS = 10
REMOVE_AGAIN_S = 0.05
_CLAIM = "claim"  # in the folder of a run that is at work, and not on the list yet
_LOOKED_AT = 20  # of the newest folders, for runs that are not on the list


@dataclass(frozen=True)
class Row:
    """A run as `runs.db` and its folder's `record.json` have it: `handle` is JSON."""

    id: int
    name: str = ""
    backend: str = "local"
    created: float = 0.0
    experiment: str = ""
    line: str = ""
    handle: str | None = "{}"


_COLUMNS = tuple(column.name for column in dataclasses.fields(Row))


@dataclass(frozen=True)
class Record:
    """A run as the list has it.

    `line` is the option line that it was started with; `handle` is what its backend needs to find
    it again, as JSON values; `created` is in seconds since the epoch.
    """

    id: int
    name: str
    backend: str
    created: float
    experiment: str
    line: str
    handle: JsonObject
    folder: Path


class Store:
    """The runs below one folder. What it does raises StoreError where the folder can't be used."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()

    def add(
        self,
        name: str,
        backend: str,
        experiment: str,
        line: str,
        options: Mapping[str, Sequence[str]] | None = None,
        handle: JsonObject | None = None,
    ) -> Record:
        """Return a new run with a folder of its own; a name that is not given is made of its
        number.

        `options` are those of its job that took lists, such as the values of `--param`. It is on
        the list at once, as one that this process is about to start.
        """
        self._prepare()
        row, folder = Row(0, name, backend, time.time(), experiment, line, _text(handle)), None
        try:
            with writing(self.folder) as database:
                row, folder = self._claimed(row, self._newest(database))
                _fill(folder, row, options or {})
                self._list(database, row)
        except BaseException as error:
            raise _not_added(error, folder or self.folder, is_made=folder is not None) from None
        return self._record(row)

    def claim(
        self,
        name: str,
        backend: str,
        experiment: str,
        line: str,
        options: Mapping[str, Sequence[str]] | None = None,
        handle: JsonObject | None = None,
    ) -> Record:
        """Return a new run as `add` does, but leave it to `enter` to have it on the list, for which
        the disk is waited for."""
        self._prepare()
        row, folder = Row(0, name, backend, time.time(), experiment, line, _text(handle)), None
        try:
            with reading(self.folder) as database:
                newest = self._newest(database)
            row, folder = self._claimed(row, newest)
            (folder / _CLAIM).touch()
            _fill(folder, row, options or {})
        except BaseException as error:
            raise _not_added(error, folder or self.folder, is_made=folder is not None) from None
        return self._record(row)

    def enter(self, run: Record) -> None:
        """Have a run on the list that was claimed."""
        with writing(self.folder) as database:
            self._list(database, _from_folder(run.folder, run.id))
        with suppress(FileNotFoundError):
            (run.folder / _CLAIM).unlink()

    def _claimed(self, row: Row, newest: int) -> tuple[Row, Path]:
        """Make the folder of the next free number; return it with that run's row."""
        number = max(newest, *self._numbers(), 0) + 1
        private_folder(self._folder(number).parent)
        while True:
            try:
                self._folder(number).mkdir()
            except FileExistsError:  # another process has claimed it since
                number += 1
            else:
                named = dataclasses.replace(row, id=number, name=row.name or default_name(number))
                return named, self._folder(number)

    def _list(self, database: sqlite3.Connection, row: Row) -> None:
        """Insert a row, and those of runs whose process was killed after its claim. One that was
        killed while it added a run has begun nothing."""
        _insert(database, row)
        recent = self._numbers()[-_LOOKED_AT:]
        rows = database.execute("SELECT id FROM runs ORDER BY id DESC LIMIT ?", (2 * _LOOKED_AT,))
        listed = {int(row[0]) for row in rows.fetchall()}
        for number in recent:
            if number not in listed and (self._folder(number) / _CLAIM).exists():
                _insert(database, _from_folder(self._folder(number), number))

    def get(self, run: str) -> Record:
        """Find a run by number, by name (the newest of that name), or as `last`.

        Raises RunNotFound naming the runs that there are.
        """
        condition, value = _which(run)
        records = self._rows(f"WHERE {condition} ORDER BY id DESC LIMIT 1", value)
        if not records:
            hint = did_you_mean(run, {record.name for record in self.all()}, ".")
            raise RunNotFound(f"no run {run!r}{hint} There {self._present()}")
        return records[0]

    def all(self, experiment: str = "") -> list[Record]:
        """Return the newest first; those filed under an experiment, if one is given."""
        if experiment:
            return self._rows("WHERE experiment = ? ORDER BY id DESC", (experiment,))
        return self._rows("ORDER BY id DESC")

    def delete(self, run: Record) -> None:
        """Remove a run's folder and forget it, in this order: a full disk has room then."""
        self._check()
        _remove(run.folder)
        try:
            with writing(self.folder) as database:
                _forget(database, run)
        except StoreError:
            with overwriting(self.folder) as database:
                _forget(database, run)

    def _rows(self, rest: str, values: tuple[str, ...] = ()) -> list[Record]:
        self._check()
        if not is_made(self.folder):
            if not any(self._numbers()):
                return []
            self._prepare()
        with reading(self.folder) as database:
            rows = database.execute(f"SELECT * FROM runs {rest}", values).fetchall()
        return [self._record(_row_of(row)) for row in rows]

    def _check(self) -> None:
        """Raise StoreError if the folder is somebody else's."""
        own_home(self.folder)

    def _prepare(self) -> None:
        """Have a folder that is ours alone, with a list of what is in it."""
        private_home(self.folder)
        if is_made(self.folder):
            return
        with writing(self.folder) as database:
            for number in self._numbers():
                _insert(database, _from_folder(self._folder(number), number))

    def _newest(self, database: sqlite3.Connection) -> int:
        """Return the highest number that the list has given."""
        row = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'runs'").fetchone()
        return int(row[0]) if row else 0

    def _numbers(self) -> list[int]:
        """Return the numbers of the folders that there are."""
        try:
            names = os.listdir(self.folder / RUNS_FOLDER)  # noqa: PTH208
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if name.isdecimal() and name.isascii())

    def _folder(self, number: int) -> Path:
        return self.folder / RUNS_FOLDER / str(number)

    def _present(self) -> str:
        names = [f"{record.id} ({record.name})" for record in self.all()[:8]]
        return f"are {', '.join(names)}" if names else "are none yet"

    def _record(self, row: Row) -> Record:
        return Record(
            row.id,
            row.name,
            row.backend,
            row.created,
            row.experiment,
            row.line,
            _read_handle(row),
            self._folder(row.id),
        )


def _not_added(error: BaseException, folder: Path, *, is_made: bool) -> BaseException:
    """Remove the folder of a run that can't be added; return the error to raise."""
    if is_made:
        shutil.rmtree(folder, ignore_errors=True)
    if not isinstance(error, OSError):
        return error
    return StoreError(
        f"no run can be added: {error.filename or folder}: {error.strerror}; {WAY_OUT}"
    )


def _text(handle: JsonObject | None) -> str:
    return json.dumps(dict(handle or {}))


def _row_of(row: sqlite3.Row) -> Row:
    """Make a Row of a database row; a column that the list lacks has its default."""
    return Row(**{name: row[name] for name in _COLUMNS if name in row.keys()})  # noqa: SIM118


def default_name(number: int) -> str:
    return f"run-{number}"


def _fill(folder: Path, row: Row, options: Mapping[str, Sequence[str]]) -> None:
    """Fill a run's folder with all by which it can be listed."""
    if options:
        replace_file(folder / OPTIONS_FILE, json.dumps(dict(options)).encode())
    replace_file(folder / RECORD_FILE, json.dumps({**asdict(row), "schema": SCHEMA}).encode())
    ours = Status(State.STARTING, supervisor=Owner.of(os.getpid()))
    ours.enter(State.STARTING, "starting").write(folder)


def _from_folder(folder: Path, number: int) -> Row:
    """Return the row of a run that the list has lost; where it has no record, what is known."""
    unknown = Row(number, default_name(number), created=folder.lstat().st_mtime)
    try:
        raw = {**asdict(unknown), **fields.load(folder / RECORD_FILE), "id": number}
        return fields.decode(Row, raw, folder / RECORD_FILE)
    except (OSError, fields.Damaged):
        return unknown


def _insert(database: sqlite3.Connection, row: Row) -> None:
    names = ", ".join(f":{name}" for name in _COLUMNS)
    database.execute(
        f"INSERT OR IGNORE INTO runs ({', '.join(_COLUMNS)}) VALUES ({names})", asdict(row)
    )


def _forget(database: sqlite3.Connection, run: Record) -> None:
    database.execute("DELETE FROM runs WHERE id = ?", (run.id,))


def _read_handle(row: Row) -> dict[str, Json]:
    try:
        return dict(json.loads(row.handle or "{}"))
    except (ValueError, TypeError):
        return {}


def _remove(folder: Path) -> None:
    """Raise StoreError naming what can't be removed."""
    for attempt in range(REMOVE_ATTEMPTS, 0, -1):
        try:
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
        except (OSError, RecursionError) as error:
            # Somebody else removes it too, or writes a last file into it.
            changed = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTEMPTY)
            if not changed or attempt == 1:
                raise StoreError(f"{folder} can't be removed: {error}; remove it by hand") from None
            time.sleep(REMOVE_AGAIN_S)
        else:
            return


def _which(run: str) -> tuple[str, tuple[str, ...]]:
    if run == "last":
        return "1", ()
    if run.isdigit():
        return "id = ?", (run,)
    return "name = ?", (run,)


_DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    OptionError,
)


@contextmanager
def readable(run: Record) -> Iterator[None]:
    """Raise RunUnreadable for errors of the block that come from a run's damaged files."""
    try:
        yield
    except _DAMAGE as error:
        raise RunUnreadable(
            f"run {run.id} ({run.name}) can't be read: {_why(run.folder, error)}; "
            f"`%distrain delete {run.id}`"
        ) from error


def _why(folder: Path, error: Exception) -> str:
    if not folder.exists():
        return f"its folder {folder} is gone"
    schema = _schema(folder)
    if schema > SCHEMA:
        return (
            f"a later version of distrain-nb has written {folder} "
            f"(schema {schema}; this one reads {SCHEMA})"
        )
    if isinstance(error, OSError | OptionError | fields.Damaged):
        return str(error)
    return f"{folder} is damaged ({type(error).__name__}: {error})"


def _schema(folder: Path) -> int:
    """Return the number of the rules by which the folder was written."""
    with suppress(OSError, fields.Damaged):
        number = fields.load(folder / RECORD_FILE).get("schema")
        return number if isinstance(number, int) else SCHEMA
    return SCHEMA
