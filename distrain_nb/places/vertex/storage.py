"""What a run leaves in its bucket.

Data of this machine in Cloud Storage.

Makes the bucket and the repository that nobody has named, where they are not there yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from google.api_core import exceptions
from requests.adapters import HTTPAdapter

from distrain_nb.backends.remote.service import Stored, renamed
from distrain_nb.backends.remote.uploading import AT_ONCE
from distrain_nb.errors import DistrainError
from distrain_nb.places.vertex.client import Api, plain_words

if TYPE_CHECKING:
    from google.cloud.storage import Client


@dataclass(frozen=True)
class CloudStorageData:
    """A bucket; `client` is Cloud Storage's, and gets a connection for each upload at a time."""

    client: Client = field(repr=False)
    bucket: str

    def __post_init__(self) -> None:
        # As Google has it for uploads in parallel: ten connections are kept otherwise.
        session = self.client._http
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=AT_ONCE))

    def sizes(self, below: str) -> Mapping[str, int]:
        """Return the objects whose names start with `below`, in bytes. Raises DistrainError."""
        with plain_words(f"list gs://{self.bucket}/{below}"):
            return {
                blob.name: blob.size for blob in self.client.list_blobs(self.bucket, prefix=below)
            }

    def upload(self, path: Path, name: str) -> None:
        """Make an object of a file. Raises DistrainError."""
        blob = self.client.bucket(self.bucket).blob(name)
        with plain_words(f"write gs://{self.bucket}/{name}"):
            blob.upload_from_filename(str(path), content_type="application/octet-stream")

    def remove(self, name: str) -> None:
        """Delete an object. Raises DistrainError."""
        with plain_words(f"delete gs://{self.bucket}/{name}"):
            self.client.bucket(self.bucket).blob(name).delete()


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


# What we call a folder, and what the variables of Vertex AI do.
_OURS, _THEIRS = "tensorboard/", "logs/"


@dataclass(frozen=True)
class BucketOutput:
    """The folder `prefix` (with a slash at its end) of a bucket; `client` is Cloud Storage's."""

    client: Client = field(repr=False)
    bucket: str
    prefix: str

    def objects(self, below: str) -> Sequence[Stored]:
        """Return the objects whose names start with `below`. Raises DistrainError."""
        with plain_words(f"list gs://{self.bucket}/{self.prefix}"):
            blobs = list(
                self.client.list_blobs(
                    self.bucket, prefix=self.prefix + renamed(below, _OURS, _THEIRS)
                )
            )
        names = (renamed(blob.name.removeprefix(self.prefix), _THEIRS, _OURS) for blob in blobs)
        return [
            Stored(name, blob.size)
            for name, blob in zip(names, blobs, strict=True)
            if not name.endswith("/")  # which stands for an empty folder
        ]

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` (exclusive). Raises DistrainError."""
        blob = self.client.bucket(self.bucket).blob(self.prefix + renamed(name, _OURS, _THEIRS))
        with plain_words(f"read gs://{self.bucket}/{blob.name}"):
            data: bytes = blob.download_as_bytes(
                start=start, end=end - 1, raw_download=True, checksum=None
            )
        return data
