"""The list of runs: a folder for each, whose `record.json` says what it is."""

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
    """A run as the list has it.

    `line` is the option line that it was started with; `handle` is what its backend needs to find
    it again, as JSON values; `created` is in seconds since the epoch. `damage` says why it can't be
    read.
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
        """Write it into the run's folder. Raises OSError."""
        values = {**vars(self), "handle": json.dumps(dict(self.handle)), "schema": SCHEMA}
        del values["folder"], values["damage"]
        replace_file(self.folder / RECORD_FILE, json.dumps(values).encode())


@dataclass(frozen=True)
class _Row:
    """A run as `record.json` has it, besides its number: `handle` is JSON in a text."""

    name: str = ""
    backend: str = "local"
    created: float = 0.0
    experiment: str = ""
    line: str = ""
    handle: str | None = "{}"


# What this process has read, by the folder of runs and by number, with its file's inode and time. A
# record is written once, and to read 10,000 of them takes half a second.
_records: dict[Path, dict[int, tuple[_Version, Record]]] = {}


class Store:
    """The runs below one folder. What it does raises StoreError where the folder can't be used."""

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
        """Return a new run with a folder of its own; a name that is not given is made of its
        number.

        `options` are those of its job that took lists, such as the values of `--param`. It is on
        the list at once, as one that this process is about to start.
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
            record.write()  # last: with it the run is on the list
        return record

    def get(self, run: str) -> Record:
        """Find a run by number, by name (the newest of that name), or as `last`.

        Raises RunNotFound naming the runs that there are.
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
        """Return the newest first; those filed under an experiment, if one is given."""
        return [r for r in self.newest_first() if not experiment or r.experiment == experiment]

    def delete(self, run: Record) -> None:
        """Remove a run's folder, and with it the run from the list."""
        own_home(self.folder)
        remove(run.folder)

    def newest_first(self) -> Iterator[Record]:
        """Yield the runs; each is read once in the life of this process, when its turn comes."""
        own_home(self.folder)
        records, is_checked = _records.setdefault(self._runs.above, {}), False
        for number in self._runs.numbers():
            if number in records and not is_checked:
                # Numbers begin anew where somebody has removed all by hand. Then the newest that is
                # known is another run, too.
                is_checked = True
                if _version(self._runs.folder(number)) != records[number][0]:
                    records.clear()
            if number in records:
                yield records[number][1]
            elif (record := self._record(number)) is not None:
                yield record

    def _record(self, number: int) -> Record | None:
        """Return the run of that number; a damaged one says so. None for a folder that is
        just being made, or not there."""
        folder = self._runs.folder(number)
        try:
            record = Record.read(folder)
            _records.setdefault(self._runs.above, {})[number] = _version(folder), record
            return record
        except (OSError, fields.Damaged) as error:
            with suppress(FileNotFoundError):  # somebody deletes it meanwhile
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
    """Return what changes when another record is written there."""
    with suppress(OSError):
        status = (folder / RECORD_FILE).stat()
        return status.st_ino, status.st_mtime_ns
    return 0, 0


def default_name(number: int) -> str:
    return f"run-{number}"


class Named(Protocol):
    """What stands on a list: a run or a study."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def not_found(noun: str, name: str, listed: Sequence[Named], otherwise: str = "none yet") -> str:
    """Say that nothing has that number or name, and what there is; `otherwise` if that is
    nothing."""
    hint = did_you_mean(name, {item.name for item in listed}, ".")
    names = ", ".join(f"{item.id} ({item.name})" for item in listed[:8])
    return f"no {noun} {name!r}{hint} There are {names or otherwise}"


def _handle(text: str | None) -> dict[str, Json]:
    try:
        return dict(json.loads(text or "{}"))
    except (ValueError, TypeError):
        return {}
