"""The gRPC services of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.aiplatform_v1 import types
from google.longrunning.operations_pb2 import Operation

from distrain_nb.places.vertex.stand_in.servers import method, service

if TYPE_CHECKING:
    import grpc

    from distrain_nb.places.vertex.stand_in.metadata import MetadataService
    from distrain_nb.places.vertex.stand_in.tensorboards import TensorboardService


def metadata_service(metadata: MetadataService) -> grpc.GenericRpcHandler:
    """Make `MetadataService`, for contexts and artifacts."""
    artifact = types.Artifact.serialize
    methods = {
        "CreateMetadataStore": method(
            types.CreateMetadataStoreRequest, metadata.create_store, Operation.SerializeToString
        ),
        "GetMetadataStore": method(
            types.GetMetadataStoreRequest, metadata.get_store, types.MetadataStore.serialize
        ),
        "CreateArtifact": method(types.CreateArtifactRequest, metadata.create_artifact, artifact),
        "GetArtifact": method(types.GetArtifactRequest, metadata.get_artifact, artifact),
        "ListArtifacts": method(
            types.ListArtifactsRequest,
            metadata.list_artifacts,
            types.ListArtifactsResponse.serialize,
        ),
        "GetExecution": method(
            types.GetExecutionRequest, metadata.get_execution, types.Execution.serialize
        ),
        "ListExecutions": method(
            types.ListExecutionsRequest,
            metadata.list_executions,
            types.ListExecutionsResponse.serialize,
        ),
    }
    methods |= _of_contexts(metadata)
    return service("google.cloud.aiplatform.v1.MetadataService", methods)


def _of_contexts(metadata: MetadataService) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    context = types.Context.serialize
    return {
        "CreateContext": method(types.CreateContextRequest, metadata.create_context, context),
        "GetContext": method(types.GetContextRequest, metadata.get_context, context),
        "UpdateContext": method(types.UpdateContextRequest, metadata.update_context, context),
        "DeleteContext": method(
            types.DeleteContextRequest, metadata.delete_context, Operation.SerializeToString
        ),
        "ListContexts": method(
            types.ListContextsRequest, metadata.list_contexts, types.ListContextsResponse.serialize
        ),
        "AddContextChildren": method(
            types.AddContextChildrenRequest,
            metadata.add_children,
            types.AddContextChildrenResponse.serialize,
        ),
        "AddContextArtifactsAndExecutions": method(
            types.AddContextArtifactsAndExecutionsRequest,
            metadata.add_artifacts,
            types.AddContextArtifactsAndExecutionsResponse.serialize,
        ),
    }


def tensorboard_service(boards: TensorboardService) -> grpc.GenericRpcHandler:
    """Make `TensorboardService`, for scalars."""
    experiment, run = types.TensorboardExperiment.serialize, types.TensorboardRun.serialize
    methods = {
        "CreateTensorboard": method(
            types.CreateTensorboardRequest, boards.create, Operation.SerializeToString
        ),
        "GetTensorboard": method(
            types.GetTensorboardRequest, boards.get, types.Tensorboard.serialize
        ),
        "ListTensorboards": method(
            types.ListTensorboardsRequest, boards.list, types.ListTensorboardsResponse.serialize
        ),
        "CreateTensorboardExperiment": method(
            types.CreateTensorboardExperimentRequest, boards.create_experiment, experiment
        ),
        "GetTensorboardExperiment": method(
            types.GetTensorboardExperimentRequest, boards.get_experiment, experiment
        ),
        "CreateTensorboardRun": method(types.CreateTensorboardRunRequest, boards.create_run, run),
        "GetTensorboardRun": method(types.GetTensorboardRunRequest, boards.get_run, run),
        "CreateTensorboardTimeSeries": method(
            types.CreateTensorboardTimeSeriesRequest,
            boards.create_series,
            types.TensorboardTimeSeries.serialize,
        ),
        "ListTensorboardTimeSeries": method(
            types.ListTensorboardTimeSeriesRequest,
            boards.list_series,
            types.ListTensorboardTimeSeriesResponse.serialize,
        ),
        "WriteTensorboardRunData": method(
            types.WriteTensorboardRunDataRequest,
            boards.write,
            types.WriteTensorboardRunDataResponse.serialize,
        ),
        "BatchReadTensorboardTimeSeriesData": method(
            types.BatchReadTensorboardTimeSeriesDataRequest,
            boards.read,
            types.BatchReadTensorboardTimeSeriesDataResponse.serialize,
        ),
    }
    return service("google.cloud.aiplatform.v1.TensorboardService", methods)
