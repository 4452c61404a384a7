"""Resources of Vertex AI's experiments: by name, how they are linked, and their points.

In a database, so that what one rehearsal files is there in the next, as it is in a project.
"""

from __future__ import annotations

import copy
import math
import random
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from distrain_nb.places.vertex.stand_in.refusals import not_found
from distrain_nb.rehearsal.failures import ApiError

WAIT_S = 30.0  # for another rehearsal that writes
_SCHEMA = """
CREATE TABLE IF NOT EXISTS resources (name TEXT PRIMARY KEY, collection TEXT, data BLOB);
CREATE INDEX IF NOT EXISTS collections ON resources (collection);
CREATE TABLE IF NOT EXISTS links (parent TEXT, child TEXT, PRIMARY KEY (parent, child));
CREATE TABLE IF NOT EXISTS points
    (series TEXT, step INTEGER, time REAL, value REAL, PRIMARY KEY (series, step));
"""
_NAN = "nan"  # what SQLite would make NULL of
Message = TypeVar("Message")


class Scalar(NamedTuple):
    """`time` is in seconds since the epoch."""

    step: int
    time: float
    value: float


class Resources:
    """Messages of the protocol by their resource names. Threads share one."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=WAIT_S, check_same_thread=False)
        self._database.executescript(_SCHEMA)
        self._lock = threading.Lock()

    def add(self, message: Any) -> None:
        """Raise ApiError if there is one of that name."""
        try:
            with self._writing() as database:
                database.execute("INSERT INTO resources VALUES (?, ?, ?)", _row(message))
        except sqlite3.IntegrityError:
            raise ApiError("ALREADY_EXISTS", f"{message.name} already exists.") from None

    def store(self, template: Message, name: str, etag: str = "1") -> Message:
        """Add a copy under a name, made now. Raises ApiError if there is one of that name."""
        resource: Any = copy.deepcopy(template)
        resource.name, resource.etag = name, etag
        resource.create_time = resource.update_time = datetime.now(timezone.utc)
        self.add(resource)
        stored: Message = resource
        return stored

    def put(self, message: Any) -> None:
        """Store a resource, in place of the one of its name."""
        with self._writing() as database:
            database.execute("INSERT OR REPLACE INTO resources VALUES (?, ?, ?)", _row(message))

    def get(self, kind: type[Message], name: str) -> Message:
        """Return the resource. Raises ApiError if there is none."""
        rows = self._rows("SELECT data FROM resources WHERE name = ?", name)
        if not rows:
            raise not_found(name)
        message: Message = kind.deserialize(rows[0][0])  # type: ignore[attr-defined]
        return message

    def getter(self, kind: type[Message]) -> Callable[[Any], Message]:
        """Return the method of the protocol that gets resources of a kind."""
        return lambda request: self.get(kind, request.name)

    def all(self, kind: Any, collection: str) -> list[Any]:
        """Return the resources of a collection, in the order in which they were made."""
        rows = self._rows(
            "SELECT data FROM resources WHERE collection = ? ORDER BY rowid", collection
        )
        return [kind.deserialize(data) for (data,) in rows]

    def delete(self, name: str) -> None:
        """Raise ApiError if there is none."""
        with self._writing() as database:
            if not database.execute("DELETE FROM resources WHERE name = ?", (name,)).rowcount:
                raise not_found(name)
            database.execute("DELETE FROM links WHERE ? IN (parent, child)", (name,))

    def link(self, parent: str, children: Iterable[str]) -> None:
        """Link children to a parent. Links may exist already."""
        with self._writing() as database:
            rows = [(parent, child) for child in children]
            database.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", rows)

    def parents(self, child: str) -> list[str]:
        rows = self._rows("SELECT parent FROM links WHERE child = ? ORDER BY parent", child)
        return [parent for (parent,) in rows]

    def write(self, series: str, points: Iterable[Scalar]) -> None:
        """Write points of a series. A point replaces the one of its step."""
        rows = [(series, p.step, p.time, _NAN if math.isnan(p.value) else p.value) for p in points]
        with self._writing() as database:
            database.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", rows)

    def points(self, series: str, most: int) -> list[Scalar]:
        """Return the points of a series by step: at most `most`, chosen at random."""
        rows = self._rows(
            "SELECT step, time, value FROM points WHERE series = ? ORDER BY step", series
        )
        chosen = sorted(random.sample(rows, most)) if len(rows) > most else rows
        return [Scalar(step, time, float(value)) for step, time, value in chosen]

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._database:
            yield self._database

    def _rows(self, query: str, value: str) -> Sequence[Any]:
        with self._lock:
            return self._database.execute(query, (value,)).fetchall()


def _row(message: Any) -> tuple[str, str, bytes]:
    data: bytes = type(message).serialize(message)
    return message.name, message.name.rpartition("/")[0], data
