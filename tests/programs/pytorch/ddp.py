"""DistributedDataParallel with a distributed sampler.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

# %%
LR, EPOCHS = 0.1, 3


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)


def make_data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=generator)
    return TensorDataset(x, x.sum(dim=1, keepdim=True))


# %%
def train(model, data):
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    return loss


# %%
dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(Net(16))
loss = train(model, make_data())
dist.all_reduce(loss)
weights = sum(p.sum().item() for p in model.parameters())
print("RESULT", json.dumps([dist.get_rank(), dist.get_world_size(), loss.item(), weights]))
dist.destroy_process_group()
