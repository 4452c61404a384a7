"""The bucket and the repository that are made for a job whose user has named none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from google.api_core import exceptions

from distrain_nb.errors import DistrainError
from distrain_nb.places.vertex.client import plain_words
from distrain_nb.places.vertex.rest import Api

if TYPE_CHECKING:
    from google.cloud.storage import Client


WAIT_S, ASK_EVERY_S = 60.0, 1.0


def make_bucket(storage: Client, name: str, region: str) -> None:
    """Create the bucket in the region, unless the project has it.

    Raises DistrainError, also if another project has a bucket of that name.
    """
    with plain_words(f"make the bucket {name}"):
        try:
            if any(bucket.name == name for bucket in storage.list_buckets(prefix=name)):
                return
            storage.create_bucket(name, location=region)
        except exceptions.Conflict:
            raise DistrainError(
                f"Can't make the bucket {name}: another project has one of that name. "
                "Name one of your own with --bucket."
            ) from None


def make_repository(project: str, region: str, name: str) -> None:
    """Create the repository of images, unless it is there. Raises DistrainError with the line that
    makes it."""
    api, parent = Api("artifactregistry"), f"v1/projects/{project}/locations/{region}/repositories"
    line = f"gcloud artifacts repositories create {name} --repository-format=docker"
    with plain_words(f"make the repository {name} in Artifact Registry"):
        answer = api.get(f"{parent}/{name}")
        if answer.status_code != 404:  # what else is wrong, the push says
            return
        operation = api.post(f"{parent}?repositoryId={name}", {"format": "DOCKER"})
        if operation.status_code != 200 and operation.status_code != 409:
            raise DistrainError(
                f"Can't make the repository {name} in Artifact Registry: {api.reason(operation)}. "
                f"Have it made: {line} --location={region} --project={project}"
            )
        end = time.monotonic() + WAIT_S
        while api.get(f"{parent}/{name}").status_code == 404 and time.monotonic() < end:
            time.sleep(ASK_EVERY_S)
