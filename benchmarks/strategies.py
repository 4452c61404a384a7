"""The study of "Efficient PyTorch training with Vertex AI", made small: seconds an epoch.

One small network, synthetic images in a far bucket and on this disk, and what the article compares:
without distribution, DataParallel, DistributedDataParallel and FullyShardedDataParallel; files and
shards. Without GPUs, DataParallel is one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STRATEGIES = (
    ("one process", "none", "disk"),
    ("one process", "none", "bucket"),
    ("DataParallel", "dp", "bucket"),
    ("DistributedDataParallel", "ddp", "disk"),
    ("DistributedDataParallel", "ddp", "bucket"),
    ("DistributedDataParallel", "ddp", "shards"),
    ("FullyShardedDataParallel", "fsdp", "shards"),
)

TRAINING = """
import io, os, time
from functools import cache
from pathlib import Path
import numpy as np
import torch, torch.distributed as dist
from PIL import Image
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from distrain_nb import log_metrics
from distrain_nb.data import shards

BATCH, WORKERS = 32, 2

def pixels(content):
    image = Image.open(io.BytesIO(content)).resize((48, 48))
    return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255

def of_sample(sample):
    return pixels(sample["jpg"]), int(sample["cls"])

class Files(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*/*.jpg"))
        self.classes = sorted({path.parent.name for path in self.paths})

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, number):
        path = self.paths[number]
        return pixels(self.content(path)), self.classes.index(path.parent.name)

    def content(self, path):
        if not endpoint:
            return path.read_bytes()
        return client(os.getpid()).get_object(Bucket=bucket, Key=str(path)[1:])["Body"].read()

@cache
def client(process):
    import boto3
    return boto3.client("s3", endpoint_url=endpoint)

def batches():
    if source == "shards":
        return shards(place, BATCH, shuffle=7, transform=of_sample).loader(WORKERS)
    files = Files(place)
    sampler = DistributedSampler(files) if strategy in ("ddp", "fsdp") else None
    return DataLoader(files, BATCH, shuffle=sampler is None, sampler=sampler, num_workers=WORKERS)

torch.set_num_threads(1)
if strategy in ("ddp", "fsdp"):
    dist.init_process_group("gloo")
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
)
if strategy == "ddp":
    model = DistributedDataParallel(model)
elif strategy == "fsdp":
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model, mesh=mesh)
elif strategy == "dp":
    model = DataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = batches()
begun, samples = time.perf_counter(), 0
for images, labels in loader:
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    samples += len(labels)
epoch_s = time.perf_counter() - begun
log_metrics(step=0, epoch_s=epoch_s)
"""


def epochs(
    places: Mapping[str, str], endpoint: str, bucket: str
) -> Iterator[tuple[str, str, float]]:
    """Strategy, source and seconds of each row; `places` are the folders of the sources.

    Files in the bucket have the names that they have on disk, and come one object at a time.
    """
    from distrain_nb import api

    for title, strategy, source in STRATEGIES:
        far = endpoint if source == "bucket" else ""
        given = (strategy, source, places[source], far, bucket)
        values = f"strategy, source, place, endpoint, bucket = {given!r}"
        ranks = 2 if strategy in ("ddp", "fsdp") else 1
        options = {"ranks_per_replica": ranks, "result": "epoch_s", "wait": True}
        run = api.submit(f"{values}\n{TRAINING}", name=f"{strategy}-{source}", **options)
        yield title, source, run.results["epoch_s"]
