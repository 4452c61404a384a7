"""The input channels of a training job, and the objects that a host finds in each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distrain_nb.places.sagemaker.stand_in.store import ObjectStore, S3Location
from distrain_nb.rehearsal.job_folder import JobFolder

FILE_MODES = ("File", "FastFile")


@dataclass(frozen=True)
class InputObject:
    """An object of a channel, and its name below the channel's folder."""

    place: S3Location
    name: str


@dataclass(frozen=True)
class InputChannel:
    """A channel as the request has it; `mode` is the job's where the channel has none."""

    name: str
    mode: str
    asked: Mapping[str, Any]

    @property
    def source(self) -> Mapping[str, Any]:
        """Where in S3 it comes from; empty for file systems."""
        location: Mapping[str, Any] = self.asked["DataSource"].get("S3DataSource") or {}
        return location

    @property
    def augmented(self) -> bool:
        """Whether its place is a manifest of records."""
        return self.source.get("S3DataType") == "AugmentedManifestFile"

    @property
    def wrapped(self) -> bool:
        """Whether records are to be wrapped in RecordIO."""
        return self.asked.get("RecordWrapperType") == "RecordIO"

    def config(self) -> dict[str, Any]:
        """Return the channel's part of `inputdataconfig.json`."""
        config = {
            "TrainingInputMode": self.mode,
            "S3DistributionType": self.source.get("S3DataDistributionType", "FullyReplicated"),
            "RecordWrapperType": self.asked.get("RecordWrapperType", "None"),
        }
        if "ContentType" in self.asked:
            config["ContentType"] = self.asked["ContentType"]
        return config

    def pieces(self, store: ObjectStore, hosts: Sequence[str], host: str) -> list[InputObject]:
        """Return the objects of a host, of an augmented manifest the manifest itself."""
        place = S3Location.of(self.source["S3Uri"])
        if self.augmented:
            return [InputObject(place, _name(place.key, place.key))]
        if self.source["S3DataType"] == "ManifestFile":
            objects = list(_listed(store, place))
        else:
            keys = store.keys(place)
            objects = [
                InputObject(S3Location(place.bucket, key), _name(key, place.key)) for key in keys
            ]
        if self.source.get("S3DataDistributionType") == "ShardedByS3Key":
            return objects[hosts.index(host) :: len(hosts)]
        return objects


def channels(request: Mapping[str, Any]) -> tuple[InputChannel, ...]:
    """Return the channels of a job."""
    mode = request["AlgorithmSpecification"]["TrainingInputMode"]
    return tuple(
        InputChannel(entry["ChannelName"], entry.get("InputMode", mode), entry)
        for entry in request.get("InputDataConfig", ())
    )


def download(pieces: Sequence[InputObject], store: ObjectStore, folder: JobFolder) -> None:
    """Lay the files of a channel down. Raises OutsideJobFolder for a key that no file can have."""
    folder.make()
    for piece in pieces:
        folder.write(piece.name, store.pieces(piece.place))


def _listed(store: ObjectStore, manifest: S3Location) -> Iterator[InputObject]:
    """Yield the objects of a manifest: `[{"prefix": "s3://…"}, "name", …]`."""
    first, *names = json.loads(store.read(manifest).read())
    prefix = S3Location.of(first["prefix"])
    for name in sorted(names):
        yield InputObject(S3Location(prefix.bucket, prefix.key + name), name)


def _name(key: str, prefix: str) -> str:
    """Return the name of an object's file: below the prefix where that is a folder, else beside
    it."""
    folder = prefix if prefix.endswith("/") else f"{prefix}/"
    if key.startswith(folder):
        return key[len(folder) :]
    return key[prefix.rfind("/") + 1 :]
