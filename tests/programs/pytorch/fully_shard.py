"""FSDP2: fully_shard, layer by layer, on a device mesh.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


# %%
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Linear(width, width)

    def forward(self, x):
        return x + self.feed(self.norm(x))


class Tower(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


# %%
mesh = init_device_mesh("cpu", (dist.get_world_size() if dist.is_initialized() else 2,))
torch.manual_seed(0)
model = Tower()
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
for step in range(3):
    torch.manual_seed(100 * step + dist.get_rank())
    loss = model(torch.randn(4, 16)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
print(
    "RESULT",
    json.dumps([dist.get_rank(), loss.item(), len(state), state["head.weight"].sum().item()]),
)
dist.destroy_process_group()
