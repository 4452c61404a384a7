"""Synchronous SGD by hand: a partitioned data set, gradients averaged, a ring of sends.

%%distrain -n 3
torchrun --nproc-per-node 3
"""

import json
from math import ceil
from random import Random

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch.optim as optim
from torch import nn


# %%
class Partition:
    def __init__(self, data, index):
        self.data = data
        self.index = index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, index):
        return self.data[self.index[index]]


class DataPartitioner:
    def __init__(self, data, sizes, seed=1234):
        self.data = data
        self.partitions = []
        rng = Random()
        rng.seed(seed)
        indexes = list(range(len(data)))
        rng.shuffle(indexes)
        for fraction in sizes:
            length = int(fraction * len(data))
            self.partitions.append(indexes[:length])
            indexes = indexes[length:]

    def use(self, partition):
        return Partition(self.data, self.partitions[partition])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


# %%
def partition_dataset():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(48, 6, generator=generator)
    dataset = list(zip(x, x[:, :3].argmax(dim=1), strict=True))
    size = dist.get_world_size()
    bsz = int(24 / float(size))
    partition = DataPartitioner(dataset, [1.0 / size] * size).use(dist.get_rank())
    return torch.utils.data.DataLoader(partition, batch_size=bsz), bsz


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def ring_allreduce(send):
    rank, size = dist.get_rank(), dist.get_world_size()
    buffer, total = send.clone(), send.clone()
    for _ in range(size - 1):
        request = dist.isend(buffer, (rank + 1) % size)
        received = torch.zeros_like(send)
        dist.recv(received, (rank - 1) % size)
        request.wait()
        buffer = received
        total += received
    return total


# %%
def run(rank, size):
    torch.manual_seed(1234)
    train_set, bsz = partition_dataset()
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    num_batches = ceil(len(train_set.dataset) / float(bsz))
    for _ in range(2):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
    ring = ring_allreduce(torch.full((2,), float(rank + 1))).tolist()
    print("RESULT", json.dumps([rank, epoch_loss / num_batches, ring]))


dist.init_process_group("gloo")
run(dist.get_rank(), dist.get_world_size())
dist.destroy_process_group()
