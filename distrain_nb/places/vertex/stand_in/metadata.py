"""The metadata service, as far as experiments go: contexts, and artifacts that belong to them."""

from __future__ import annotations

import copy
import re
import time
from typing import Any, NamedTuple

from google.cloud.aiplatform_v1 import types
from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty

from distrain_nb.places.vertex.stand_in.job_resource import now
from distrain_nb.places.vertex.stand_in.jobs import page
from distrain_nb.places.vertex.stand_in.refusals import invalid
from distrain_nb.places.vertex.stand_in.resources import Message, Resources
from distrain_nb.rehearsal.failures import ApiError

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
