"""The list of runs: one SQLite file that every kernel of the user shares."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distrain_nb.config import home
from distrain_nb.errors import RunNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

OPTIONS_FILE = "options.json"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    backend TEXT NOT NULL,
    created REAL NOT NULL,
    experiment TEXT NOT NULL,
    line TEXT NOT NULL,
    handle TEXT
)
"""


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
    handle: Mapping[str, Any]
    folder: Path


class Store:
    """The runs below one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()

    def add(
        self,
        name: str,
        backend: str,
        experiment: str,
        line: str,
        options: Mapping[str, Sequence[str]] | None = None,
    ) -> Record:
        """A new run with a folder of its own; a name that is not given is made of its number.

        `options` are those of its job that took lists, such as the values of `--param`.
        It is on the list once it has been submitted and has a handle.
        """
        with self._open() as database:
            row = database.execute(
                "INSERT INTO runs (name, backend, created, experiment, line)"
                " VALUES (?, ?, ?, ?, ?)",
                (name, backend, time.time(), experiment, line),
            )
            number = row.lastrowid
            if not name:
                database.execute("UPDATE runs SET name = ? WHERE id = ?", (f"run-{number}", number))
            added = database.execute("SELECT * FROM runs WHERE id = ?", (number,)).fetchone()
        record = self._record(added)
        record.folder.mkdir(parents=True)
        (record.folder / OPTIONS_FILE).write_text(json.dumps(options or {}), encoding="utf-8")
        return record

    def set_handle(self, run: Record, handle: Mapping[str, Any]) -> Record:
        """Remember how the backend finds the run again, which puts it on the list."""
        with self._open() as database:
            database.execute(
                "UPDATE runs SET handle = ? WHERE id = ?", (json.dumps(dict(handle)), run.id)
            )
        return self.get(str(run.id))

    def get(self, run: str) -> Record:
        """By number, by name (the newest of that name), or `last`.

        Raises RunNotFound naming the runs that there are.
        """
        condition, value = _which(run)
        with self._open() as database:
            rows = database.execute(
                f"SELECT * FROM runs WHERE handle IS NOT NULL AND {condition}"
                " ORDER BY id DESC LIMIT 1",
                value,
            ).fetchall()
        if not rows:
            raise RunNotFound(f"no run {run!r}; there {self._present()}")
        return self._record(rows[0])

    def all(self) -> list[Record]:
        """The newest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT * FROM runs WHERE handle IS NOT NULL ORDER BY id DESC"
            ).fetchall()
        return [self._record(row) for row in rows]

    def delete(self, run: Record) -> None:
        """Forget a run and remove its folder."""
        with self._open() as database:
            database.execute("DELETE FROM runs WHERE id = ?", (run.id,))
        shutil.rmtree(run.folder, ignore_errors=True)

    def _present(self) -> str:
        names = [f"{record.id} ({record.name})" for record in self.all()[:8]]
        return f"are {', '.join(names)}" if names else "are none yet"

    def _record(self, row: sqlite3.Row) -> Record:
        fields = dict(row)
        fields["handle"] = json.loads(fields["handle"] or "{}")
        return Record(**fields, folder=self.folder / "runs" / str(fields["id"]))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.folder / "runs.db", timeout=10)
        database.row_factory = sqlite3.Row
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            with database:
                database.execute(_SCHEMA)
                yield database
        finally:
            database.close()


def _which(run: str) -> tuple[str, tuple[str, ...]]:
    if run == "last":
        return "1", ()
    if run.isdigit():
        return "id = ?", (run,)
    return "name = ?", (run,)
