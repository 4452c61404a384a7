"""ZeroRedundancyOptimizer and a communication hook that compresses to bfloat16.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

# %%
settings = {"lr": 0.01, "width": 32}

# %%
dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(settings["width"], settings["width"]) for _ in range(3)])
model = DistributedDataParallel(net)
model.register_comm_hook(None, default_hooks.fp16_compress_hook)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=settings["lr"])
for step in range(3):
    torch.manual_seed(step * 10 + dist.get_rank())
    optimizer.zero_grad()
    model(torch.randn(4, settings["width"])).square().mean().backward()
    optimizer.step()
total = sum(p.double().sum().item() for p in model.parameters())
print("RESULT", json.dumps([dist.get_rank(), round(total, 2)]))
dist.destroy_process_group()
