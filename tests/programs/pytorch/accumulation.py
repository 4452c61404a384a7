"""DDP with gradient accumulation under no_sync, and a join of uneven inputs.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import contextlib
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

# %%
ACCUMULATE = 2
BATCHES = [5, 4]  # of each rank


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(4, 6, generator=generator) for _ in range(BATCHES[rank])]


# %%
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, batch in enumerate(batches(dist.get_rank())[:4], 1):
    last = number % ACCUMULATE == 0
    with contextlib.nullcontext() if last else model.no_sync():
        (model(batch).square().mean() / ACCUMULATE).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
with Join([model]):
    for batch in batches(dist.get_rank()):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
print("RESULT", json.dumps([dist.get_rank(), model.module.weight.sum().item()]))
dist.destroy_process_group()
