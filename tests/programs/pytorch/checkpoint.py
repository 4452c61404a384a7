"""DDP that saves a checkpoint on rank 0 and continues from it on all ranks.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP

# %%
CHECKPOINT = os.path.join(tempfile.gettempdir(), "programs-ddp.checkpoint")


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def setup():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def cleanup():
    dist.destroy_process_group()


# %%
def demo_checkpoint():
    rank, world_size = setup()
    torch.manual_seed(rank)
    model = DDP(ToyModel())
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    path = f"{CHECKPOINT}-{os.environ['MASTER_PORT']}"
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    optimizer.zero_grad()
    outputs = model(torch.full((20, 10), float(rank + 1)))
    loss_fn(outputs, torch.zeros(20, 5)).backward()
    optimizer.step()
    dist.barrier()
    if rank == 0:
        os.remove(path)
    total = sum(p.sum().item() for p in model.parameters())
    print("RESULT", json.dumps([rank, world_size, total]))
    cleanup()


if __name__ == "__main__":
    demo_checkpoint()
