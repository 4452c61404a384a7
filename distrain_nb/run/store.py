"""The list of runs. Each run has a folder with a `record.json`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from distrain_nb.config import home, own_home, private_home
from distrain_nb.errors import RunNotFound, did_you_mean
from distrain_nb.run import folder_access
from distrain_nb.run.numbered_folders import NumberedFolders, is_number, remove
from distrain_nb.types import Json, JsonObject
from distrain_nb.worker.files import fields
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import OPTIONS_FILE, RECORD_FILE, SCHEMA
from distrain_nb.worker.files.status import Owner, State, Status

RUNS_FOLDER = "runs"
_Version = tuple[int, int]


@dataclass(frozen=True)
class Record:
    """A run on the list.

    `line` is the line of options that it was started with. `handle` is what its backend needs to
    find it again, as JSON values. `created` is in seconds since the epoch. `damage` says why the
    record can't be read.
    """

    id: int
    name: str
    backend: str
    created: float
    experiment: str
    line: str
    handle: JsonObject
    folder: Path
    damage: str = ""

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Read the record of the run in that folder. Raises OSError; `fields.Damaged`."""
        row, number = fields.read(_Row, folder / RECORD_FILE), int(folder.name)
        name = row.name or default_name(number)
        values = {**vars(row), "name": name, "handle": _handle(row.handle)}
        return cls(id=number, folder=folder, **values)

    def write(self) -> None:
        """Write the record into the run's folder. Raises OSError."""
        values = {**vars(self), "handle": json.dumps(dict(self.handle)), "schema": SCHEMA}
        del values["folder"], values["damage"]
        replace_file(self.folder / RECORD_FILE, json.dumps(values).encode())


@dataclass(frozen=True)
class _Row:
    """The content of a `record.json`. `handle` is JSON in a text."""

    name: str = ""
    backend: str = "local"
    created: float = 0.0
    experiment: str = ""
    line: str = ""
    handle: str | None = "{}"


# The records that this process has read, by folder and number, with inode and time of their files.
# A record is written once, and to read 10,000 of them takes half a second.
_records: dict[Path, dict[int, tuple[_Version, Record]]] = {}


class Store:
    """The runs below one folder. Its methods raise StoreError if the folder can't be used."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()
        self._runs = NumberedFolders(self.folder / RUNS_FOLDER, "run", RECORD_FILE)

    def add(
        self,
        name: str,
        backend: str,
        experiment: str,
        line: str,
        options: Mapping[str, Sequence[str]] | None = None,
        handle: JsonObject | None = None,
    ) -> Record:
        """Return a new run with a folder of its own.

        Without *name*, its number makes the name.

        *options* are options of the job that take lists, such as the values of `--param`. The run
        is on the list at once. Its status says that this process is about to start it.
        """
        private_home(self.folder)
        with self._runs.new() as folder:
            if options:
                replace_file(folder / OPTIONS_FILE, json.dumps(dict(options)).encode())
            ours = Status(State.STARTING, supervisor=Owner.of(os.getpid()))
            ours.enter(State.STARTING, "starting").write(folder)
            number = int(folder.name)
            name = name or default_name(number)
            values = dict(handle or {})
            record = Record(number, name, backend, time.time(), experiment, line, values, folder)
            record.write()  # last: the list shows only folders with a record, so no half-made run
        return record

    def get(self, run: str) -> Record:
        """Find a run by number, by name (the newest of that name), or as `last`.

        Raises RunNotFound with the runs on the list.
        """
        own_home(self.folder)
        if is_number(run):
            record = self._record(int(run))
        else:
            record = next((r for r in self.newest_first() if run in ("last", r.name)), None)
        if record is None:
            raise RunNotFound(not_found("run", run, self.all()))
        return record

    def all(self, experiment: str = "") -> list[Record]:
        """Return the runs, the newest first; with *experiment*, those of that experiment."""
        return [r for r in self.newest_first() if not experiment or r.experiment == experiment]

    def delete(self, run: Record) -> None:
        """Remove a run's folder, and with it the run from the list."""
        own_home(self.folder)
        remove(run.folder)

    def newest_first(self) -> Iterator[Record]:
        """Yield the runs. This process reads each record once, when its turn comes."""
        own_home(self.folder)
        records, is_checked = _records.setdefault(self._runs.above, {}), False
        for number in self._runs.numbers():
            if number in records and not is_checked:
                # If all runs were removed by hand, numbers begin anew. Then the newest number that
                # is known belongs to another run too, so it alone is checked.
                is_checked = True
                if _version(self._runs.folder(number)) != records[number][0]:
                    records.clear()
            if number in records:
                yield records[number][1]
            elif (record := self._record(number)) is not None:
                yield record

    def _record(self, number: int) -> Record | None:
        """Return the run of that number, a damaged one with the damage.

        None means that there is no such folder, or that it is just being made.
        """
        folder = self._runs.folder(number)
        try:
            record = Record.read(folder)
            _records.setdefault(self._runs.above, {})[number] = _version(folder), record
            return record
        except (OSError, fields.Damaged) as error:
            with suppress(FileNotFoundError):  # it is deleted at this moment
                if not self._runs.is_being_made(folder):
                    name, created = default_name(number), folder.lstat().st_mtime
                    return Record(number, name, "local", created, "", "", {}, folder, str(error))
            return None


@contextmanager
def readable(run: Record) -> Iterator[None]:
    """Raise RunUnreadable for errors of the block that come from a run's damaged files."""
    title, way_out = f"run {run.id} ({run.name})", f"%distrain delete {run.id}"
    with folder_access.readable(title, run.folder, way_out):
        if run.damage:
            raise fields.Damaged(run.damage)
        yield


def _version(folder: Path) -> _Version:
    """Return a value that changes when another record is written into a folder."""
    with suppress(OSError):
        status = (folder / RECORD_FILE).stat()
        return status.st_ino, status.st_mtime_ns
    return 0, 0


def default_name(number: int) -> str:
    return f"run-{number}"


class Named(Protocol):
    """A run or a study on a list."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def not_found(noun: str, name: str, listed: Sequence[Named], otherwise: str = "none yet") -> str:
    """Return the message that nothing has that number or name, and what the list has instead."""
    hint = did_you_mean(name, {item.name for item in listed}, ".")
    names = ", ".join(f"{item.id} ({item.name})" for item in listed[:8])
    return f"no {noun} {name!r}{hint} There are {names or otherwise}"


def _handle(text: str | None) -> dict[str, Json]:
    try:
        return dict(json.loads(text or "{}"))
    except (ValueError, TypeError):
        return {}
