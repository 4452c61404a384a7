"""A training recipe: warm-up and cosine, autocast in bfloat16, clipping, an average of weights.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import math
import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


# %%
@dataclass
class OptimizerConfig:
    lr: float = 1e-2
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1


@dataclass
class Recipe:
    steps: int = 6
    warmup: int = 2
    clip: float = 1.0
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


recipe = Recipe(steps=5)
recipe.optimizer.lr = 2e-2


# %%
def groups(model, weight_decay):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def build_schedule(optimizer, recipe):
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=recipe.warmup)
    cosine = CosineAnnealingLR(optimizer, T_max=recipe.steps - recipe.warmup)
    return SequentialLR(optimizer, [warmup, cosine], milestones=[recipe.warmup])


# %%
local_rank = int(os.environ.get("LOCAL_RANK", 0))
dist.init_process_group("gloo")
torch.manual_seed(1337)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)))
ema = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.9))
settings = recipe.optimizer
optimizer = torch.optim.AdamW(
    groups(model, settings.weight_decay), lr=settings.lr, betas=settings.betas
)
schedule = build_schedule(optimizer, recipe)
rates = []
for step in range(recipe.steps):
    torch.manual_seed(step * 10 + local_rank)
    x, y = torch.randn(16, 8), torch.randint(0, 2, (16,))
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
    ema.update_parameters(model.module)
    rates.append(schedule.get_last_lr()[0])
total = sum(p.abs().sum().item() for p in ema.parameters())
print("RESULT", json.dumps([local_rank, round(math.log(total), 2), rates]))
dist.destroy_process_group()
