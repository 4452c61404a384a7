"""A contrastive loss over all ranks: an autograd function that gathers and scatters gradients.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


# %%
class GatherLayer(torch.autograd.Function):
    """Gather tensors from all ranks, supporting backward propagation."""

    @staticmethod
    def forward(ctx, input):
        output = [torch.zeros_like(input) for _ in range(dist.get_world_size())]
        dist.all_gather(output, input)
        return tuple(output)

    @staticmethod
    def backward(ctx, *grads):
        grad = torch.stack(grads)
        dist.all_reduce(grad)
        return grad[dist.get_rank()]


class NTXent(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, z_i, z_j):
        z_i = torch.cat(GatherLayer.apply(z_i), dim=0)
        z_j = torch.cat(GatherLayer.apply(z_j), dim=0)
        z = F.normalize(torch.cat([z_i, z_j]), dim=1)
        n = len(z_i)
        similarity = (z @ z.T / self.temperature).fill_diagonal_(float("-inf"))
        target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        return F.cross_entropy(similarity, target)


# %%
encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
with torch.no_grad():
    for parameter in encoder.parameters():
        parameter.copy_(torch.linspace(-0.3, 0.4, parameter.numel()).reshape(parameter.shape))
criterion = NTXent(temperature=0.5)

# %%
dist.init_process_group("gloo")
model = DDP(encoder)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
generator = torch.Generator().manual_seed(dist.get_rank())
losses = []
for _ in range(3):
    x = torch.randn(8, 12, generator=generator)
    noise = 0.1 * torch.randn(8, 12, generator=generator)
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(x), model(x + noise))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("RESULT", json.dumps([dist.get_rank(), losses]))
dist.destroy_process_group()
