"""The gRPC services of experiments: metadata and TensorBoards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.longrunning.operations_pb2 import Operation

from distrain_nb.places.vertex.stand_in.servers import methods_of, service

if TYPE_CHECKING:
    import grpc

    from distrain_nb.places.vertex.stand_in.metadata import MetadataService
    from distrain_nb.places.vertex.stand_in.tensorboards import TensorboardService

    _Methods = dict[str, grpc.RpcMethodHandler[Any, Any]]

_OPERATION = Operation.SerializeToString


def metadata_service(metadata: MetadataService) -> grpc.GenericRpcHandler:
    """Make `MetadataService`, for contexts and artifacts."""
    answers = {
        "CreateMetadataStore": metadata.create_store,
        "GetMetadataStore": metadata.get_store,
        "CreateArtifact": metadata.create_artifact,
        "GetArtifact": metadata.get_artifact,
        "ListArtifacts": metadata.list_artifacts,
        "GetExecution": metadata.get_execution,
        "ListExecutions": metadata.list_executions,
        "CreateContext": metadata.create_context,
        "GetContext": metadata.get_context,
        "UpdateContext": metadata.update_context,
        "DeleteContext": metadata.delete_context,
        "ListContexts": metadata.list_contexts,
        "AddContextChildren": metadata.add_children,
        "AddContextArtifactsAndExecutions": metadata.add_artifacts,
    }
    lasting = dict.fromkeys(("CreateMetadataStore", "DeleteContext"), _OPERATION)
    methods = methods_of(answers, lasting)
    return service("google.cloud.aiplatform.v1.MetadataService", methods)


def tensorboard_service(boards: TensorboardService) -> grpc.GenericRpcHandler:
    """Make `TensorboardService`, for scalars."""
    answers = {
        "CreateTensorboard": boards.create,
        "GetTensorboard": boards.get,
        "ListTensorboards": boards.list,
        "CreateTensorboardExperiment": boards.create_experiment,
        "GetTensorboardExperiment": boards.get_experiment,
        "CreateTensorboardRun": boards.create_run,
        "GetTensorboardRun": boards.get_run,
        "CreateTensorboardTimeSeries": boards.create_series,
        "ListTensorboardTimeSeries": boards.list_series,
        "WriteTensorboardRunData": boards.write,
        "BatchReadTensorboardTimeSeriesData": boards.read,
    }
    methods = methods_of(answers, {"CreateTensorboard": _OPERATION})
    return service("google.cloud.aiplatform.v1.TensorboardService", methods)
