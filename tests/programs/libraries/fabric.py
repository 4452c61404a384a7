"""Lightning Fabric: setup, backward, all_gather.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# %%
LR = 0.1


def dataset():
    x = torch.arange(48.0).reshape(16, 3) / 48
    return TensorDataset(x, x.mean(dim=1, keepdim=True))


# %%
fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
fabric.launch()
fabric.seed_everything(1, verbose=False)
model = nn.Linear(3, 1)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=LR))
loader = fabric.setup_dataloaders(DataLoader(dataset(), batch_size=4))
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    fabric.backward(loss)
    optimizer.step()
losses = fabric.all_gather(loss).tolist()
print("RESULT", json.dumps([fabric.global_rank, fabric.world_size, losses]))
torch.distributed.destroy_process_group()
