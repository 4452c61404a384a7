"""Tensor parallel: the two layers of an MLP by columns and rows.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# %%
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 32)
        self.down = nn.Linear(32, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}

# %%
mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
torch.manual_seed(0)
model = parallelize_module(MLP(), mesh, plan)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 32).reshape(4, 8)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print("RESULT", json.dumps([dist.get_rank(), loss.item(), list(model.up.weight.to_local().shape)]))
dist.destroy_process_group()
