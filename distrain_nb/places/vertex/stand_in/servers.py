"""The gRPC services: each method's bytes become the clients' own message types and back."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from google.cloud.aiplatform_v1 import types
from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse
from google.protobuf.empty_pb2 import Empty

from distrain_nb.rehearsal.access import is_ours
from distrain_nb.rehearsal.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from distrain_nb.places.vertex.stand_in.entries import Entries
    from distrain_nb.places.vertex.stand_in.jobs import JobService
    from distrain_nb.places.vertex.stand_in.pipelines import PipelineService
    from distrain_nb.places.vertex.stand_in.tuning import HyperparameterTuningService

    _Methods = dict[str, grpc.RpcMethodHandler[Any, Any]]

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_THREADS = 16
_MAX_MESSAGE = 64 << 20


@contextmanager
def serve(*services: grpc.GenericRpcHandler, port: int = 0) -> Iterator[str]:
    """Serve without encryption on a port of this machine, any for 0; give `host:port`."""
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
    """Refuses whatever another user of this machine asks at `port`."""

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
    job = types.CustomJob.serialize
    listed = types.ListCustomJobsResponse.serialize
    methods = {
        "CreateCustomJob": method(types.CreateCustomJobRequest, jobs.create, job),
        "GetCustomJob": method(
            types.GetCustomJobRequest, lambda request: jobs.get(request.name), job
        ),
        "ListCustomJobs": method(types.ListCustomJobsRequest, jobs.list, listed),
        "CancelCustomJob": method(
            types.CancelCustomJobRequest, lambda request: jobs.cancel(request.name), _nothing
        ),
    }
    methods |= _tuning_methods(tuning)
    return service("google.cloud.aiplatform.v1.JobService", methods)


def _tuning_methods(tuning: HyperparameterTuningService) -> _Methods:
    job = types.HyperparameterTuningJob.serialize
    listed = types.ListHyperparameterTuningJobsResponse.serialize
    return {
        "CreateHyperparameterTuningJob": method(
            types.CreateHyperparameterTuningJobRequest, tuning.create, job
        ),
        "GetHyperparameterTuningJob": method(
            types.GetHyperparameterTuningJobRequest, lambda request: tuning.get(request.name), job
        ),
        "ListHyperparameterTuningJobs": method(
            types.ListHyperparameterTuningJobsRequest, tuning.list, listed
        ),
        "CancelHyperparameterTuningJob": method(
            types.CancelHyperparameterTuningJobRequest,
            lambda request: tuning.cancel(request.name),
            _nothing,
        ),
    }


def pipeline_service(pipelines: PipelineService) -> grpc.GenericRpcHandler:
    """Make `PipelineService`, for training pipelines of the custom task."""
    pipeline = types.TrainingPipeline.serialize
    listed = types.ListTrainingPipelinesResponse.serialize
    methods = {
        "CreateTrainingPipeline": method(
            types.CreateTrainingPipelineRequest, pipelines.create, pipeline
        ),
        "GetTrainingPipeline": method(
            types.GetTrainingPipelineRequest, lambda request: pipelines.get(request.name), pipeline
        ),
        "ListTrainingPipelines": method(types.ListTrainingPipelinesRequest, pipelines.list, listed),
        "CancelTrainingPipeline": method(
            types.CancelTrainingPipelineRequest,
            lambda request: pipelines.cancel(request.name),
            _nothing,
        ),
    }
    return service("google.cloud.aiplatform.v1.PipelineService", methods)


def logging_service(entries: Entries) -> grpc.GenericRpcHandler:
    """Make `LoggingServiceV2`, for reading."""
    listed = ListLogEntriesResponse.serialize
    methods = {"ListLogEntries": method(ListLogEntriesRequest, entries.list, listed)}
    return service("google.logging.v2.LoggingServiceV2", methods)


def service(
    name: str, methods: dict[str, grpc.RpcMethodHandler[Any, Any]]
) -> grpc.GenericRpcHandler:
    """Return a service of the protocol by its full name, and what it can do."""
    return grpc.method_handlers_generic_handler(name, methods)


def method(
    kind: Any, answer: Callable[[Any], Any], serialize: Callable[[Any], bytes]
) -> grpc.RpcMethodHandler[Any, Any]:
    """Make a handler that gives requests of the type `kind` to `answer`. What it refuses is an
    error of gRPC."""

    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answer(request)
        except ApiError as no:
            _log.info("refused %s: %s: %s", kind.__name__, no.code, no.text)
            context.abort(grpc.StatusCode[no.code], no.text)

    return grpc.unary_unary_rpc_method_handler(handle, kind.deserialize, serialize)


def _nothing(_: None) -> bytes:
    return Empty().SerializeToString()
