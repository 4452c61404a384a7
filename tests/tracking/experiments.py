"""The stand-ins of Vertex AI Experiments by themselves, and Google's SDK that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform import initializer

from distrain_nb.places.vertex.client import sdk_client
from distrain_nb.places.vertex.stand_in.experiment_servers import (
    metadata_service,
    tensorboard_service,
)
from distrain_nb.places.vertex.stand_in.metadata import MetadataService
from distrain_nb.places.vertex.stand_in.resources import Resources
from distrain_nb.places.vertex.stand_in.servers import serve
from distrain_nb.places.vertex.stand_in.tensorboards import TensorboardService

PROJECT, REGION = "my-project", "us-central1"


@contextmanager
def experiments(path: Path, port: int = 0) -> Iterator[str]:
    """The services, with what a database has; gives `host:port`."""
    with closing(Resources(path)) as kept:
        services = (
            metadata_service(MetadataService(kept)),
            tensorboard_service(TensorboardService(kept)),
        )
        with serve(*services, port=port) as address:
            yield address


@contextmanager
def sdk(address: str, project: str = PROJECT) -> Iterator[None]:
    """The SDK has its settings in a global: as a user's `aiplatform.init` leaves it, but for an
    address without encryption."""
    before = initializer.global_config
    config: Any = type(before)()
    config.init(project=project, location=REGION, credentials=AnonymousCredentials())
    config.create_client = lambda client_class, **_: sdk_client(client_class, address)
    initializer.global_config = config
    try:
        yield
    finally:
        initializer.global_config = before
