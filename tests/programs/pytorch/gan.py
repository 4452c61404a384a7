"""A GAN: two models under DDP, two optimizers, an unused parameter.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP

# %%
nz, ngf, ndf = 4, 8, 8


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, ngf), nn.ReLU(True), nn.Linear(ngf, 2))

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, ndf), nn.LeakyReLU(0.2), nn.Linear(ndf, 1))
        self.unused = nn.Linear(2, 2)

    def forward(self, input):
        return torch.sigmoid(self.main(input)).squeeze(1)


# %%
torch.manual_seed(999)
netG = Generator()
netG.apply(weights_init)
netD = Discriminator()
netD.apply(weights_init)
for net in (netG, netD):
    for parameter in net.parameters():
        nn.init.uniform_(parameter, 0.1, 0.3)
fixed_noise = torch.linspace(-1, 1, 3 * nz).reshape(3, nz)
with torch.no_grad():
    for net in (netG, netD):
        for parameter in net.parameters():
            parameter.copy_(torch.linspace(-0.5, 0.5, parameter.numel()).view_as(parameter))

# %%
dist.init_process_group("gloo")
generator = torch.Generator().manual_seed(dist.get_rank())
G = DDP(netG)
D = DDP(netD, find_unused_parameters=True, broadcast_buffers=False)
criterion = nn.BCELoss()
optimizerD = optim.Adam(D.parameters(), lr=0.02, betas=(0.5, 0.999))
optimizerG = optim.Adam(G.parameters(), lr=0.02, betas=(0.5, 0.999))
for _ in range(3):
    real = torch.randn(8, 2, generator=generator) + 3
    noise = torch.randn(8, nz, generator=generator)
    D.zero_grad()
    errD_real = criterion(D(real), torch.ones(8))
    errD_real.backward()
    fake = G(noise)
    errD_fake = criterion(D(fake.detach()), torch.zeros(8))
    errD_fake.backward()
    optimizerD.step()
    G.zero_grad()
    errG = criterion(D(fake), torch.ones(8))
    errG.backward()
    optimizerG.step()
with torch.no_grad():
    picture = netG(fixed_noise)
found = [errD_real.item() + errD_fake.item(), errG.item(), picture.tolist()]
print("RESULT", json.dumps([dist.get_rank(), *found]))
dist.destroy_process_group()
