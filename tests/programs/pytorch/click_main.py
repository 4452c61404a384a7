"""A click command with options, called as scripts do.

%%distrain -n 2 -- --hidden 6 --optimizer adam
torchrun --nproc-per-node 2
"""

import json
import os

import click
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

# %%
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


def setup():
    dist.init_process_group("gloo")
    return int(os.environ["LOCAL_RANK"])


# %%
@click.command(context_settings={"show_default": True})
@click.option("--hidden", default=6, type=int, help="width of the hidden layer")
@click.option("--optimizer", default="adam", type=click.Choice(sorted(OPTIMIZERS)))
@click.option("--lr", default=0.01)
def main(hidden, optimizer, lr):
    local_rank = setup()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1)))
    opt = OPTIMIZERS[optimizer](model.parameters(), lr=lr)
    for step in range(3):
        opt.zero_grad()
        loss = model(torch.full((2, 4), float(local_rank + step))).square().mean()
        loss.backward()
        opt.step()
    print("RESULT", json.dumps([local_rank, hidden, optimizer, loss.item()]))
    dist.destroy_process_group()


# %%
if __name__ == "__main__":
    main(standalone_mode=False)
