"""What a run leaves in its bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.backends.remote.service import Stored, renamed
from distrain_nb.places.vertex.client import plain_words

if TYPE_CHECKING:
    from google.cloud.storage import Client


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
