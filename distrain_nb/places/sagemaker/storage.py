"""Data of this machine in S3: what `--data` uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.places.sagemaker.client import plain_words

if TYPE_CHECKING:
    from botocore.client import BaseClient

_IN_PARTS = 64 << 20  # bytes from which on an upload has parts, which are sent again by themselves


@dataclass(frozen=True)
class S3Data:
    """A bucket; `client` is that of S3."""

    client: BaseClient = field(repr=False)
    bucket: str

    def sizes(self, below: str) -> Mapping[str, int]:
        """Return the objects whose names start with `below`, in bytes. Raises DistrainError."""
        with plain_words(f"list s3://{self.bucket}/{below}"):
            paginator = self.client.get_paginator("list_objects_v2")
            pages = paginator.paginate(Bucket=self.bucket, Prefix=below)
            return {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", ())}

    def upload(self, path: Path, name: str) -> None:
        """Make an object of a file, in parts where it is large. Raises DistrainError."""
        with plain_words(f"write s3://{self.bucket}/{name}"), path.open("rb") as file:
            if path.stat().st_size > _IN_PARTS:
                self.client.upload_fileobj(file, self.bucket, name)
            else:
                self.client.put_object(Bucket=self.bucket, Key=name, Body=file)

    def remove(self, name: str) -> None:
        """Delete an object. Raises DistrainError."""
        with plain_words(f"delete s3://{self.bucket}/{name}"):
            self.client.delete_object(Bucket=self.bucket, Key=name)
