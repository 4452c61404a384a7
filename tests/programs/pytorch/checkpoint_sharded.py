"""torch.distributed.checkpoint: saved sharded, loaded into a fresh model.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard


# %%
class AppState(Stateful):
    def __init__(self, model, optimizer=None):
        self.model = model
        self.optimizer = optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state_dict):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state_dict["model"],
            optim_state_dict=state_dict["optim"],
        )


def make(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    fully_shard(model)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


# %%
dist.init_process_group("gloo")
folder = os.path.join(tempfile.gettempdir(), f"programs-dcp-{os.environ['MASTER_PORT']}")
model, optimizer = make(seed=1)
model(torch.ones(4, 8)).sum().backward()
optimizer.step()
dcp.save({"app": AppState(model, optimizer)}, checkpoint_id=folder)
other, other_optimizer = make(seed=2)
dcp.load({"app": AppState(other, other_optimizer)}, checkpoint_id=folder)
same = all(
    torch.equal(a.full_tensor(), b.full_tensor())
    for a, b in zip(model.parameters(), other.parameters(), strict=True)
)
total = sum(p.full_tensor().sum().item() for p in other.parameters())
dist.barrier()
if dist.get_rank() == 0:
    shutil.rmtree(folder)
print("RESULT", json.dumps([dist.get_rank(), same, total]))
dist.destroy_process_group()
