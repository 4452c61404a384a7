"""What a run leaves in its bucket."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from distrain_nb.backends.remote.service import Stored, renamed
from distrain_nb.errors import DistrainError
from distrain_nb.places.sagemaker.client import code_of, plain_words

if TYPE_CHECKING:
    from botocore.client import BaseClient


# What we call a folder, and where the service puts it.
_OURS, _THEIRS = "tensorboard/", "tensorboard-output/"
_RESULTS, _ARCHIVE = "results/", "output/output.tar.gz"
_ATTEMPTS, _PIECE = 3, 1 << 20


@dataclass(frozen=True)
class RunOutput:
    """The folder `prefix` (with a slash at its end) of a bucket; `client` is that of S3.

    Results come in an archive, which is read once, as a stream, into a file without a name.
    """

    client: BaseClient = field(repr=False)
    bucket: str
    prefix: str

    def objects(self, below: str) -> Sequence[Stored]:
        """Return the objects whose names start with `below`. Raises DistrainError."""
        if below.startswith(_RESULTS):
            named = self._results.places.items()
            return [Stored(name, size) for name, (_, size) in named if name.startswith(below)]
        return list(self._listed(renamed(below, _OURS, _THEIRS)))

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` (exclusive). Raises DistrainError."""
        if name.startswith(_RESULTS):
            return self._results.read(name, start, end)
        key = self.prefix + renamed(name, _OURS, _THEIRS)
        with plain_words(f"read s3://{self.bucket}/{key}"):
            asked = {"Bucket": self.bucket, "Key": key, "Range": f"bytes={start}-{end - 1}"}
            data: bytes = self.client.get_object(**asked)["Body"].read()
        return data

    def _listed(self, below: str) -> list[Stored]:
        prefix = self.prefix + below
        with plain_words(f"list s3://{self.bucket}/{prefix}"):
            paginator = self.client.get_paginator("list_objects_v2")
            pages = list(paginator.paginate(Bucket=self.bucket, Prefix=prefix))
        items = [item for page in pages for item in page.get("Contents", ())]
        return [
            Stored(renamed(item["Key"].removeprefix(self.prefix), _THEIRS, _OURS), item["Size"])
            for item in items
            if not item["Key"].endswith("/")  # which stands for an empty folder
        ]

    @cached_property
    def _results(self) -> UnpackedArchive:
        """The members of the archive; none where there is no archive."""
        key = self.prefix + _ARCHIVE
        with plain_words(f"read s3://{self.bucket}/{key}"):
            for attempts in reversed(range(_ATTEMPTS)):
                try:
                    return UnpackedArchive.of(
                        self.client.get_object(Bucket=self.bucket, Key=key)["Body"]
                    )
                except ClientError as error:
                    if code_of(error) == "NoSuchKey":
                        break
                    raise
                except (BotoCoreError, tarfile.TarError, zlib.error) as error:
                    if not attempts:  # else it may have been the connection
                        raise DistrainError(
                            f"Can't read s3://{self.bucket}/{key}: {error}"
                        ) from error
        return UnpackedArchive(tempfile.TemporaryFile(), {})


@dataclass(frozen=True)
class UnpackedArchive:
    """Files of an archive one after the other in `file`; `places` are by name, each the first byte
    and the size."""

    file: IO[bytes] = field(repr=False)
    places: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, body: IO[bytes]) -> UnpackedArchive:
        """Return the results in a gzipped archive: plain files alone, whatever else it may hold."""
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as it is read
        places = {}
        with tarfile.open(fileobj=body, mode="r|gz") as archive:
            for member in archive:
                name = str(PurePosixPath(member.name))
                content = archive.extractfile(member) if member.isfile() else None
                if content is None or not name.startswith(_RESULTS):
                    continue
                start = file.tell()
                while piece := content.read(_PIECE):
                    file.write(piece)
                places[name] = (start, file.tell() - start)
        return cls(file, places)

    def read(self, name: str, start: int, end: int) -> bytes:
        first, size = self.places[name]
        self.file.seek(first + start)
        return self.file.read(max(0, min(end, size) - start))
