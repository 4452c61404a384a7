"""Pipeline parallel: a stage a rank, a GPipe schedule.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

# %%
WIDTH, CHUNKS = 8, 4


def stages():
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), nn.Linear(WIDTH, WIDTH)]


def loss_fn(output, target):
    return (output - target).pow(2).mean()


# %%
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo")
device = torch.device("cpu")
stage = PipelineStage(stages()[rank], rank, world, device)
schedule = ScheduleGPipe(stage, n_microbatches=CHUNKS, loss_fn=loss_fn)
x, y = torch.linspace(0, 1, 8 * WIDTH).reshape(8, WIDTH), torch.zeros(8, WIDTH)
losses = []
if rank == 0:
    schedule.step(x)
else:
    schedule.step(target=y, losses=losses)
gradient = sum(p.grad.abs().sum().item() for p in stage.submod.parameters())
print("RESULT", json.dumps([rank, [loss.item() for loss in losses], gradient]))
dist.destroy_process_group()
