"""Post-local SGD: DDP's hook for the first steps, then models averaged every few.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.algorithms.model_averaging.averagers as averagers
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


# %%
@dataclass(frozen=True)
class Config:
    steps: int = 8
    warmup: int = 3
    period: int = 2
    lr: float = 0.05


config = Config()

# %%
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(nn.Linear(5, 1))
state = PostLocalSGDState(
    process_group=None, subgroup=dist.new_group([rank]), start_localSGD_iter=config.warmup
)
model.register_comm_hook(state, post_localSGD_hook)
optimizer = PostLocalSGDOptimizer(
    optim=torch.optim.SGD(model.parameters(), lr=config.lr),
    averager=averagers.PeriodicModelAverager(period=config.period, warmup_steps=config.warmup),
)
generator = torch.Generator().manual_seed(rank)
for _ in range(config.steps):
    x = torch.randn(6, 5, generator=generator)
    loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("RESULT", json.dumps([rank, loss.item(), model.module.weight.tolist()]))
dist.destroy_process_group()
