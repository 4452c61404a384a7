"""Trains by a strategy, in processes that it starts itself: `python train.py --gpus 2`."""

import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from images import loader_of
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel

from distrain_nb import log_metrics


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", choices=("dp", "ddp", "fsdp"), required=True)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--train_data_path", default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--train_batch_size", type=int, default=8)
    return parser.parse_args()


def distributed_as(strategy, model):
    if strategy == "ddp":
        return DistributedDataParallel(model)
    if strategy == "fsdp":
        return fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return DataParallel(model)


def worker(rank, world_size, args, told):
    if world_size > 1:
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(392, 4))
    model = distributed_as(args.strategy, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    batch_size = args.train_batch_size * args.gpus // world_size
    loader, begin = loader_of(
        args.train_data_path, batch_size, rank, world_size, args.dataloader_num_workers
    )
    for epoch in range(args.epochs):
        begin(epoch)
        begun, seen = time.perf_counter(), []
        for images, labels, numbers in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += numbers.tolist()
        told.put((epoch, loss.item(), time.perf_counter() - begun, seen))
    # The group ends with its process: taken apart while a function's model goes, it may hang
    # (pytorch/pytorch#56297).


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


if __name__ == "__main__":
    args = arguments()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
    world_size = 1 if args.strategy == "dp" else args.gpus
    told = mp.get_context("spawn").Queue()
    mp.spawn(worker, (world_size, args, told), nprocs=world_size)
    epochs = {}
    for _ in range(world_size * args.epochs):
        epoch, *values = told.get()
        epochs.setdefault(epoch, []).append(values)
    for epoch, values in sorted(epochs.items()):
        loss = sum(each[0] for each in values) / world_size
        log_metrics(step=epoch, loss=loss, epoch_s=max(each[1] for each in values))
    seen = [sorted(n for *_, numbers in each for n in numbers) for each in epochs.values()]
