"""Data of this machine in Cloud Storage: what `--data` uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from requests.adapters import HTTPAdapter

from distrain_nb.backends.remote.uploading import AT_ONCE
from distrain_nb.places.vertex.client import plain_words

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
