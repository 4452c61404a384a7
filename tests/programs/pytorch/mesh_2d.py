"""A mesh of two dimensions: tensor parallel within, FSDP2 across.

%%distrain -n 4
torchrun --nproc-per-node 4
"""

import json
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

# %%
TP_SIZE = 2
STEPS = 2


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


# %%
world_size = int(os.environ["WORLD_SIZE"])
mesh = init_device_mesh("cpu", (world_size // TP_SIZE, TP_SIZE), mesh_dim_names=("dp", "tp"))
dp_rank = mesh["dp"].get_local_rank()
torch.manual_seed(0)
model = FeedForward(8, 16)
parallelize_module(
    model,
    mesh["tp"],
    {"w1": ColwiseParallel(), "w3": ColwiseParallel(), "w2": RowwiseParallel()},
)
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
for step in range(STEPS):
    torch.manual_seed(step + 100 * dp_rank)  # the same for the ranks of one model
    optimizer.zero_grad()
    loss = model(torch.rand(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
shape = list(model.w1.weight.to_local().shape)
print("RESULT", json.dumps([dist.get_rank(), mesh.get_coordinate(), shape, loss.item()]))
dist.destroy_process_group()
