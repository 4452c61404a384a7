"""One epoch, by one reader: `python epochs.py READER PLACE WORKERS decoded|bytes`.

Prints seconds and samples. Readers: `files`, `shards`, `litdata`, `mosaicml`; places are folders,
and for the rivals `s3://` too, whose endpoint and keys the environment has. `pack-litdata` and
`pack-mosaicml PLACE PROCESSES SOURCE` read a folder of files and write to a place.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

BATCH = 64
SEED = 7


def decoded(content: bytes) -> torch.Tensor:
    return torch.from_numpy(np.array(Image.open(io.BytesIO(content))))


def kept(content: bytes) -> int:
    return len(content)


def made(of: Any) -> Any:
    return decoded if of else kept


class Files(Dataset):  # type: ignore[type-arg]
    """As ImageFolder reads them; of a bucket by an object at a time, as gcsfuse does.

    `s3://BUCKET/PREFIX#FOLDER` has the names from a folder with the same files: a listing that was
    made before.
    """

    def __init__(self, place: str, decodes: bool) -> None:
        self.far, _, folder = place.rpartition("#")
        root = Path(folder)
        self.paths = [
            (str(path), number)
            for number, name in enumerate(sorted(p.name for p in root.iterdir()))
            for path in sorted((root / name).iterdir())
        ]
        self.make = made(decodes)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        path, label = self.paths[number]
        if self.far:
            return self.make(self.fetched("/".join(path.split("/")[-2:]))), label
        with open(path, "rb") as file:  # noqa: PTH123
            return self.make(file.read()), label

    def fetched(self, name: str) -> bytes:
        bucket, prefix = self.far.removeprefix("s3://").split("/")
        answer = client(os.getpid()).get_object(Bucket=bucket, Key=f"{prefix}/{name}")
        content: bytes = answer["Body"].read()
        return content


@cache
def client(process: int) -> Any:  # noqa: ARG001
    """Of each process its own, whose connection stays."""
    import boto3

    return boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT_URL"])


class OfSample:
    def __init__(self, decodes: bool) -> None:
        self.make = made(decodes)

    def __call__(self, sample: dict[str, Any]) -> tuple[Any, int]:
        return self.make(sample["jpg"]), int(sample["cls"])


def files(place: str, workers: int, decodes: bool) -> Any:
    return DataLoader(Files(place, decodes), BATCH, shuffle=True, num_workers=workers)


def shards(place: str, workers: int, decodes: bool) -> Any:
    from distrain_nb.data import shards

    return shards(place, BATCH, shuffle=SEED, transform=OfSample(decodes)).loader(workers)


def litdata(place: str, workers: int, decodes: bool) -> Any:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # which it has no option for
    make = OfSample(decodes)

    class Samples(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, index: Any) -> Any:
            return make(super().__getitem__(index))

    options = {
        "endpoint_url": os.environ.get("S3_ENDPOINT_URL"),
        "aws_access_key_id": os.environ.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY"),
    }
    far = {"storage_options": options, "cache_dir": tempfile.mkdtemp()}
    dataset = Samples(place, shuffle=True, seed=SEED, **(far if "://" in place else {}))
    return StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers)


def mosaicml(place: str, workers: int, decodes: bool) -> Any:
    from streaming import StreamingDataset

    make = OfSample(decodes)

    class Samples(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: Any) -> Any:
            return make(super().__getitem__(at))

    where = {"remote": place, "local": tempfile.mkdtemp()} if "://" in place else {"local": place}
    dataset = Samples(**where, shuffle=True, shuffle_seed=SEED, batch_size=BATCH)
    return DataLoader(dataset, batch_size=BATCH, num_workers=workers)


READERS = {"files": files, "shards": shards, "litdata": litdata, "mosaicml": mosaicml}


def read_one(path_and_label: tuple[str, int]) -> dict[str, Any]:
    path, label = path_and_label
    return {"jpg": Path(path).read_bytes(), "cls": label}


def pack_litdata(source: str, target: str, cores: int) -> None:
    from litdata import optimize

    paths = Files(source, False).paths
    optimize(read_one, paths, target, chunk_bytes="64MB", num_workers=cores, verbose=False)


def pack_mosaicml(source: str, target: str, _: int) -> None:
    from streaming import MDSWriter

    columns = {"jpg": "bytes", "cls": "int"}
    with MDSWriter(out=target, columns=columns, size_limit="64mb") as writer:
        for each in Files(source, False).paths:
            writer.write(read_one(each))


PACKERS = {"pack-litdata": pack_litdata, "pack-mosaicml": pack_mosaicml}


def main() -> None:
    what, place, number, more = sys.argv[1:]
    begun = time.perf_counter()
    samples = 0
    if what in PACKERS:
        PACKERS[what](more, place, int(number))
    else:
        for _, labels in READERS[what](place, int(number), more == "decoded"):
            samples += len(labels)
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": round(seconds, 3), "samples": samples}))


if __name__ == "__main__":
    main()
