"""The metadata service, as far as experiments go: contexts, and artifacts that belong to them.

Resources of Vertex AI's experiments: by name, how they are linked, and their points.

In a database, so that what one rehearsal files is there in the next, as it is in a project.
"""

from __future__ import annotations

import copy
import math
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from google.cloud.aiplatform_v1 import types
from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty

from distrain_nb.places.vertex.stand_in.job_resource import now
from distrain_nb.places.vertex.stand_in.jobs import page
from distrain_nb.places.vertex.stand_in.refusals import invalid, not_found
from distrain_nb.rehearsal.faults import ApiError

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
        rows = [(series, p.step, p.time, _stored(p.value)) for p in points]
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


def _stored(value: float) -> float | str:
    return _NAN if math.isnan(value) else value


_ID = re.compile(r"[a-z0-9][a-z0-9-]{3,127}")
_STORE = re.compile(r"projects/[^/]+/locations/[a-z0-9-]+/metadataStores/[a-z0-9-]+")
_TITLE = re.compile(r'schema_title\s*=\s*"([^"]*)"')
_PARENTS = re.compile(r'parent_contexts:("[^"]*"(?:,"[^"]*")*)')
_INSIDE = re.compile(r'in_context\("([^"]*)"\)')
_JOINED = re.compile(r"\s+|\(|\)|\bAND\b|\bOR\b")


class MetadataService:
    """Contexts by name: experiments and their runs, which are their children."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.get_store = resources.getter(types.MetadataStore)
        self.get_artifact = resources.getter(types.Artifact)
        self.get_execution = resources.getter(types.Execution)

    def create_store(self, request: types.CreateMetadataStoreRequest) -> Operation:
        store = copy.deepcopy(request.metadata_store)
        store.name = f"{request.parent}/metadataStores/{request.metadata_store_id or 'default'}"
        store.create_time = store.update_time = now()
        self._resources.add(store)
        return finished_operation(store, store.name)

    def create_context(self, request: types.CreateContextRequest) -> types.Context:
        return self._create(request.context, request.parent, "contexts", request.context_id)

    def create_artifact(self, request: types.CreateArtifactRequest) -> types.Artifact:
        return self._create(request.artifact, request.parent, "artifacts", request.artifact_id)

    def get_context(self, request: types.GetContextRequest) -> types.Context:
        return self._with_parents(self._resources.get(types.Context, request.name))

    def update_context(self, request: types.UpdateContextRequest) -> types.Context:
        """Return the whole of it. Raises ApiError where it has changed since the caller had it."""
        if request.update_mask.paths:
            raise ApiError("UNIMPLEMENTED", "A rehearsal takes a whole context, and no mask.")
        context = copy.deepcopy(request.context)
        before = self._resources.get(types.Context, context.name)
        if context.etag not in ("", before.etag):
            raise ApiError(
                "ABORTED",
                f"Specified Context `etag`: `{context.etag}` does not match server `etag`: "
                f"`{before.etag}`",
            )
        context.create_time, context.update_time = before.create_time, now()
        context.schema_title, context.schema_version = before.schema_title, before.schema_version
        context.etag = str(time.time_ns())
        self._resources.put(context)
        return self._with_parents(context)

    def delete_context(self, request: types.DeleteContextRequest) -> Operation:
        self._resources.delete(request.name)
        return finished_operation(Empty(), request.name)

    def list_contexts(self, request: types.ListContextsRequest) -> types.ListContextsResponse:
        only = _ResourceFilter.of(request.filter)
        collection = f"{request.parent}/contexts"
        listed = [
            context
            for context in map(self._with_parents, self._resources.all(types.Context, collection))
            if only.takes(context, context.parent_contexts)
        ]
        contexts, token = page(listed, request)
        return types.ListContextsResponse(contexts=contexts, next_page_token=token)

    def list_artifacts(self, request: types.ListArtifactsRequest) -> types.ListArtifactsResponse:
        only = _ResourceFilter.of(request.filter)
        collection = f"{request.parent}/artifacts"
        listed = [
            artifact
            for artifact in self._resources.all(types.Artifact, collection)
            if only.takes(artifact, self._resources.parents(artifact.name))
        ]
        artifacts, token = page(listed, request)
        return types.ListArtifactsResponse(artifacts=artifacts, next_page_token=token)

    def list_executions(self, request: types.ListExecutionsRequest) -> types.ListExecutionsResponse:
        """List no executions: nothing here makes any."""
        _ResourceFilter.of(request.filter)
        return types.ListExecutionsResponse()

    def add_children(
        self, request: types.AddContextChildrenRequest
    ) -> types.AddContextChildrenResponse:
        for name in (request.context, *request.child_contexts):
            self._resources.get(types.Context, name)
        self._resources.link(request.context, request.child_contexts)
        return types.AddContextChildrenResponse()

    def add_artifacts(
        self, request: types.AddContextArtifactsAndExecutionsRequest
    ) -> types.AddContextArtifactsAndExecutionsResponse:
        self._resources.get(types.Context, request.context)
        for name in request.artifacts:
            self._resources.get(types.Artifact, name)
        if request.executions:
            raise ApiError("UNIMPLEMENTED", "A rehearsal has no executions.")
        self._resources.link(request.context, request.artifacts)
        return types.AddContextArtifactsAndExecutionsResponse()

    def _create(self, template: Message, parent: str, collection: str, identifier: str) -> Message:
        if not _STORE.fullmatch(parent):
            raise invalid(f"parent {parent!r} is not a metadata store.")
        self._resources.get(types.MetadataStore, parent)
        if not _ID.fullmatch(identifier):
            raise invalid(
                f"{identifier!r} is not a valid resource ID: it must be 4 to 128 characters of "
                "[a-z0-9-]."
            )
        name = f"{parent}/{collection}/{identifier}"
        return self._resources.store(template, name, str(time.time_ns()))

    def _with_parents(self, context: types.Context) -> types.Context:
        context.parent_contexts = self._resources.parents(context.name)
        return context


class _ResourceFilter(NamedTuple):
    """A parsed filter: one of the schemas, all of the contexts."""

    titles: frozenset[str]
    inside: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _ResourceFilter:
        """Raise ApiError for one that can't be read."""
        titles = frozenset(_TITLE.findall(text))
        parents = [name for some in _PARENTS.findall(text) for name in some.split(",")]
        rest = text
        for pattern in (_TITLE, _PARENTS, _INSIDE, _JOINED):
            rest = pattern.sub("", rest)
        if rest:
            raise ApiError("UNIMPLEMENTED", f"A rehearsal has no such filter: {text}")
        return cls(titles, (*(name.strip('"') for name in parents), *_INSIDE.findall(text)))

    def takes(self, node: Any, contexts: Any) -> bool:
        right = not self.titles or node.schema_title in self.titles
        return right and all(name in contexts for name in self.inside)


def finished_operation(message: Any, name: str) -> Operation:
    """Return an operation that has ended with that."""
    operation = Operation(name=f"{name}/operations/1", done=True)
    operation.response.Pack(message if isinstance(message, Empty) else type(message).pb(message))
    return operation
