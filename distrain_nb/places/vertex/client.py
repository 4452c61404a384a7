"""Calls of Google's API: clients for the cloud or a stand-in, retries, errors in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from google.api_core import exceptions, retry
from google.api_core.client_options import ClientOptions
from google.auth.exceptions import GoogleAuthError

from distrain_nb.backends.remote.service import Denied
from distrain_nb.errors import DistrainError

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import JobServiceClient, PipelineServiceClient
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.storage import Client
    from grpc import Channel

    from distrain_nb.types import Unknown

ClientT = TypeVar("ClientT")

# The guidance for clients: exponential pauses with jitter for what may pass.
MAY_PASS = (
    exceptions.ServiceUnavailable,
    exceptions.DeadlineExceeded,
    exceptions.ResourceExhausted,
    exceptions.InternalServerError,
)
CALL_S, RETRY_S = 60.0, 120.0

_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (
        exceptions.PermissionDenied,
        "Your account lacks a role: docs/vertex.md lists those that are needed.",
    ),
    (exceptions.Unauthenticated, "Log in: gcloud auth application-default login."),
    (
        exceptions.ResourceExhausted,
        "Ask for more quota in the console, or take fewer or other machines.",
    ),
    (exceptions.NotFound, "Look at project, region and names: %distrain config shows them."),
)


def retries() -> retry.Retry:
    """Return the retries of calls that may be repeated without harm."""
    return retry.Retry(
        predicate=retry.if_exception_type(*MAY_PASS), initial=0.5, maximum=20, timeout=RETRY_S
    )


@contextmanager
def plain_words(doing: str) -> Iterator[None]:
    """Errors of the API and of logging in become a DistrainError that says what to do, a Denied
    where a role is missing."""
    try:
        yield
    except exceptions.GoogleAPICallError as error:
        hint = next((text for kind, text in _HINTS if isinstance(error, kind)), "")
        refused = Denied if isinstance(error, exceptions.PermissionDenied) else DistrainError
        raise refused(f"Can't {doing}: {error.message} {hint}".strip()) from error
    except exceptions.RetryError as error:
        raise DistrainError(f"Can't {doing}: Google Cloud doesn't answer: {error.cause}") from error
    except GoogleAuthError as error:
        raise DistrainError(
            f"Can't {doing}: {error} Log in: gcloud auth application-default login."
        ) from error


def job_client(region: str, endpoints: Mapping[str, str]) -> JobServiceClient:
    """Return a client for custom jobs."""
    from google.cloud.aiplatform_v1 import JobServiceClient

    return _client(JobServiceClient, endpoints.get("aiplatform"), _options(region))


def pipeline_client(region: str, endpoints: Mapping[str, str]) -> PipelineServiceClient:
    """Return a client for training pipelines."""
    from google.cloud.aiplatform_v1 import PipelineServiceClient

    return _client(PipelineServiceClient, endpoints.get("aiplatform"), _options(region))


def logging_client(endpoints: Mapping[str, str]) -> LoggingServiceV2Client:
    """Return a client for the entries of Cloud Logging."""
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

    return _client(LoggingServiceV2Client, endpoints.get("logging"))


def storage_client(project: str, endpoints: Mapping[str, str]) -> Client:
    """Return a client for Cloud Storage."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    if "storage" not in endpoints:
        return storage.Client(project=project)
    return storage.Client(
        project=project,
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options={"api_endpoint": endpoints["storage"]},
    )


def sdk_client(kind: type[Unknown], address: str) -> Unknown:
    """Return the client that google-cloud-aiplatform uses for its class `kind`, where the services
    of experiments are a stand-in's."""
    from google.cloud.aiplatform_v1 import MetadataServiceClient, TensorboardServiceClient

    classes: dict[str, Unknown] = {
        "Metadata": MetadataServiceClient,
        "Tensorboard": TensorboardServiceClient,
    }
    client = _client(classes[kind.__name__.partition("Client")[0]], address)
    client._default_version = "v1"  # the SDK makes URLs of it
    return client


def _client(
    kind: type[ClientT], address: str | None, options: ClientOptions | None = None
) -> ClientT:
    """Return a client of Google's for the service itself, or for the stand-in at an address."""
    make: Unknown = kind
    transport = make.get_transport_class("grpc")(channel=_channel(address)) if address else None
    client: ClientT = make(client_options=None if transport else options, transport=transport)
    return client


def _options(region: str) -> ClientOptions:
    return ClientOptions(api_endpoint=f"{region}-aiplatform.googleapis.com")


def _channel(address: str) -> Channel:
    """Open a channel to a stand-in on this machine, without a proxy."""
    import grpc

    return grpc.insecure_channel(
        address,
        options=[
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", 64 << 20),
        ],
    )
