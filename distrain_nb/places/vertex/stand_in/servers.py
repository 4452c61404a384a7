"""The gRPC services: they turn the bytes of each method into the clients' message types and
back."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import grpc
from google.cloud.aiplatform_v1 import types
from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse
from google.protobuf.empty_pb2 import Empty

from distrain_nb.rehearsal.access import is_ours
from distrain_nb.rehearsal.failures import ApiError

if TYPE_CHECKING:
    from distrain_nb.places.vertex.stand_in.entries import Entries
    from distrain_nb.places.vertex.stand_in.jobs import JobService
    from distrain_nb.places.vertex.stand_in.pipelines import PipelineService
    from distrain_nb.places.vertex.stand_in.tuning_jobs import HyperparameterTuningService

    _Methods = dict[str, grpc.RpcMethodHandler[Any, Any]]

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_THREADS = 16
_MAX_MESSAGE = 64 << 20


@contextmanager
def serve(*services: grpc.GenericRpcHandler, port: int = 0) -> Iterator[str]:
    """Serve without encryption on a port of this machine, 0 for any. Return `host:port`."""
    sizes = [("grpc.max_send_message_length", _MAX_MESSAGE), ("grpc.so_reuseport", 0)]
    private = _Private()
    server = grpc.server(ThreadPoolExecutor(_THREADS), interceptors=[private], options=sizes)
    server.add_generic_rpc_handlers(services)
    private.port = port = server.add_insecure_port(f"{_HOST}:{port}")
    server.start()
    try:
        yield f"{_HOST}:{port}"
    finally:
        server.stop(None).wait()


class _Private(grpc.ServerInterceptor):
    """Refuses requests of other users of this machine at `port`."""

    port = 0

    def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        handler = continuation(details)
        if handler is None:  # of no service here
            return None

        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            _, host, port = context.peer().split(":")  # as in ipv4:127.0.0.1:4321
            if not is_ours((host, int(port)), (_HOST, self.port)):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "A rehearsal serves its own user.")
            return handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            handle, handler.request_deserializer, handler.response_serializer
        )


def job_service(jobs: JobService, tuning: HyperparameterTuningService) -> grpc.GenericRpcHandler:
    """Make `JobService`, for custom jobs and hyperparameter tuning jobs."""
    methods = {**_of_jobs("CustomJob", jobs), **_of_jobs("HyperparameterTuningJob", tuning)}
    return service("google.cloud.aiplatform.v1.JobService", methods)


def pipeline_service(pipelines: PipelineService) -> grpc.GenericRpcHandler:
    """Make `PipelineService`, for training pipelines of the custom task."""
    methods = _of_jobs("TrainingPipeline", pipelines)
    return service("google.cloud.aiplatform.v1.PipelineService", methods)


def _of_jobs(kind: str, jobs: Any) -> _Methods:
    answers = {
        f"Create{kind}": jobs.create,
        f"Get{kind}": lambda request: jobs.get(request.name),
        f"List{kind}s": jobs.list,
        f"Cancel{kind}": lambda request: jobs.cancel(request.name),
    }
    return methods_of(answers, {f"Cancel{kind}": lambda _: Empty().SerializeToString()})


def methods_of(
    answers: Mapping[str, Callable[[Any], Any]],
    serializers: Mapping[str, Callable[[Any], bytes]] = MappingProxyType({}),
) -> _Methods:
    """Return the methods of the protocol, by name, with the functions that answer them.

    A method's name determines the types of requests and answers, except for `serializers`.
    """
    return {
        name: method(
            getattr(types, f"{name}Request"), answer, serializers.get(name) or _serializer(name)
        )
        for name, answer in answers.items()
    }


def _serializer(name: str) -> Callable[[Any], bytes]:
    plain = re.sub("^(Create|Get|Update)", "", name)
    kind: Any = getattr(types, f"{name}Response", None) or getattr(types, plain)
    serialize: Callable[[Any], bytes] = kind.serialize
    return serialize


def logging_service(entries: Entries) -> grpc.GenericRpcHandler:
    """Make `LoggingServiceV2`, for reading."""
    listed = ListLogEntriesResponse.serialize
    methods = {"ListLogEntries": method(ListLogEntriesRequest, entries.list, listed)}
    return service("google.logging.v2.LoggingServiceV2", methods)


def service(
    name: str, methods: dict[str, grpc.RpcMethodHandler[Any, Any]]
) -> grpc.GenericRpcHandler:
    """Return a service of the protocol by its full name, with its methods."""
    return grpc.method_handlers_generic_handler(name, methods)


def method(
    kind: Any, answer: Callable[[Any], Any], serialize: Callable[[Any], bytes]
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return a handler that passes requests of the type `kind` to `answer`.

    A refusal becomes an error of gRPC.
    """

    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answer(request)
        except ApiError as no:
            _log.info("refused %s: %s: %s", kind.__name__, no.code, no.text)
            context.abort(grpc.StatusCode[no.code], no.text)

    return grpc.unary_unary_rpc_method_handler(handle, kind.deserialize, serialize)
