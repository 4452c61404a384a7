"""Objects in S3 as the job's role meets them, and folders that are kept there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import boto3
from botocore.config import Config

from distrain_nb.backends.local_folder import Folder
from distrain_nb.places.sagemaker.stand_in.aws import ROLE_KEY
from distrain_nb.rehearsal.bucket_folder import BucketFolder
from distrain_nb.rehearsal.job_folder import PIECE, JobFolder, Version, ignoring_job_errors

DATA = "rehearsal/s3"  # a folder for each bucket, with what a rehearsal finds in it
_URI = re.compile(r"(?:s3|https)://([^/]+)/?(.*)")


def client(service: str, endpoint: str, region: str = "us-east-1", key: str = ROLE_KEY) -> Any:
    """Return a client of the stand-in's own, in the job's role unless another key is its."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key="rehearsal",
        config=Config(
            s3={"addressing_style": "path"}, proxies={}, max_pool_connections=32, retries={}
        ),
    )


@dataclass(frozen=True)
class S3Location:
    """A bucket and a key in it, which may be the beginning of many."""

    bucket: str
    key: str

    @classmethod
    def of(cls, uri: str) -> S3Location:
        """Parse `s3://BUCKET/KEY`."""
        match = _URI.fullmatch(uri)
        return cls(match[1], match[2]) if match else cls("", uri)

    def below(self, name: str) -> S3Location:
        """Return the object of that name in the folder that this place is."""
        folder = self.key if not self.key or self.key.endswith("/") else f"{self.key}/"
        return S3Location(self.bucket, folder + name)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class ObjectStore:
    """All buckets, by a client of S3. Its errors are botocore's ClientError."""

    s3: Any

    def create(self, bucket: str) -> None:
        """Have a bucket of that name."""
        self.s3.create_bucket(Bucket=bucket)

    def fill(self, bucket: str, folder: Path) -> None:
        """Make objects of the files of a folder of the user's, also of those behind its links."""
        for member in Folder.of(folder).files:
            with member.path.open("rb") as file:
                self.write(S3Location(bucket, member.name), file)

    def keys(self, place: S3Location) -> list[str]:
        """Return the keys that begin as the place's does, folders' own objects left out, in
        order."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=place.bucket, Prefix=place.key
        )
        names = (entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return sorted(key for key in names if not key.endswith("/"))

    def versions(self, bucket: str) -> dict[str, str]:
        """Return which version of each object a bucket has, by key; folders' own objects left
        out."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        tags = {entry["Key"]: entry["ETag"] for page in pages for entry in page.get("Contents", ())}
        return {key: tag for key, tag in tags.items() if not key.endswith("/")}

    def read(self, place: S3Location) -> Any:
        """Return an object as a file to read from."""
        return self.s3.get_object(Bucket=place.bucket, Key=place.key)["Body"]

    def write(self, place: S3Location, file: IO[bytes]) -> None:
        """Make an object of a file, which is closed then."""
        self.s3.upload_fileobj(file, place.bucket, place.key)

    def pieces(self, place: S3Location) -> Iterator[bytes]:
        """Yield the contents of an object."""
        pieces: Iterator[bytes] = self.read(place).iter_chunks(PIECE)
        return pieces


@dataclass
class KeptBucket:
    """A bucket and the folder of our home that stands for it, which keeps what jobs write there."""

    name: str
    store: ObjectStore
    folder: BucketFolder

    @classmethod
    def fill(cls, name: str, folder: Path, store: ObjectStore) -> KeptBucket:
        """Have objects of the folder's files in the bucket, which is there."""
        store.fill(name, folder)
        return cls(name, store, BucketFolder(folder, store.versions(name)))

    def save(self) -> Iterator[str]:
        """Have the folder as the bucket is now; says what is not kept."""
        return self.folder.update(
            lambda: self.store.versions(self.name),
            lambda key: self.store.pieces(S3Location(self.name, key)),
        )


@dataclass
class SyncedFolder:
    """A folder of a host's disk whose files become objects while the job runs."""

    folder: JobFolder
    place: S3Location
    store: ObjectStore
    _saved: dict[str, Version] = field(default_factory=dict)

    def restore(self) -> None:
        """Bring here what is kept there.

        Raises OutsideJobFolder for a key that no file can have.
        """
        start = self.place.below("")
        for key in self.store.keys(start):
            data = self.store.pieces(S3Location(start.bucket, key))
            self.folder.write(key[len(start.key) :], data)
        self._saved = self.folder.versions()

    def save(self) -> None:
        """Keep what has been written since the last time."""
        for name, version in self.folder.versions().items():
            if self._saved.get(name) != version:
                with ignoring_job_errors(), self.folder.open(name) as file:
                    self.store.write(self.place.below(name), file)
                    self._saved[name] = version
