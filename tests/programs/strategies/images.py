"""Images and their classes, from a list of files or from shards."""

import io

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from distrain_nb.data import shards


def pixels(content):
    image = Image.open(io.BytesIO(content)).convert("RGB")
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(3, 16, 16) / 255


class ListedImages(Dataset):
    """Of a text file with a path, a tab and a class on each line."""

    def __init__(self, path):
        with open(path) as lines:
            self.items = [line.strip().split("\t") for line in lines]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        path, label = self.items[number]
        with open(path, "rb") as file:
            return pixels(file.read()), int(label), number


def of_shard(sample):
    return pixels(sample["jpg"]), int(sample["cls"]), int(sample["__key__"].rpartition("/")[2])


def loader_of(path, batch_size, rank, world_size, workers):
    """A loader of this rank's share, and what begins an epoch of it."""
    if not path.endswith(".tsv"):
        dataset = shards(
            path, batch_size, shuffle=1, transform=of_shard, rank=rank, world_size=world_size
        )
        return dataset.loader(workers=workers), dataset.set_epoch
    images = ListedImages(path)
    sampler = DistributedSampler(images, num_replicas=world_size, rank=rank)
    loader = DataLoader(images, batch_size, sampler=sampler, num_workers=workers)
    return loader, sampler.set_epoch
