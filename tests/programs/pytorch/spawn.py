"""A script that starts its own ranks by torch.multiprocessing.spawn.

%%distrain -n 1 --launcher python
python
"""

import json
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

# %%
WORLD_SIZE = 1 + 1


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def demo_basic(rank, world_size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    model(torch.full((2, 4), float(rank))).sum().backward()
    print("RESULT", json.dumps([rank, world_size, model.module.weight.grad.tolist()]), flush=True)
    dist.destroy_process_group()


# %%
if __name__ == "__main__":
    mp.spawn(demo_basic, args=(WORLD_SIZE, free_port()), nprocs=WORLD_SIZE, join=True)
