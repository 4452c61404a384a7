"""FullyShardedDataParallel with a wrap policy, gradients clipped over all shards.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import functools
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

# %%
wrap = functools.partial(size_based_auto_wrap_policy, min_num_params=100)


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


# %%
dist.init_process_group("gloo")
rank = dist.get_rank()
model = FullyShardedDataParallel(build(), auto_wrap_policy=wrap, device_id=torch.device("cpu"))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(3):
    torch.manual_seed(10 * step + rank)
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    norm = model.clip_grad_norm_(1.0)
    optimizer.step()
print("RESULT", json.dumps([rank, loss.item(), norm.item()]))
dist.destroy_process_group()
