"""An asynchronous checkpoint of a stateful application, taken while training continues.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard

# %%
SAVE_EVERY = 2


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

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


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(16, 16)
        self.net2 = nn.Linear(16, 8)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


# %%
def main():
    dist.init_process_group("cpu:gloo")
    saving = dist.new_group(backend="gloo")  # apart from what training says
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    torch.manual_seed(0)
    model = fully_shard(ToyModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    future, losses = None, []
    for step in range(4):
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss = model(torch.rand(8, 16)).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % SAVE_EVERY == 0:
            if future is not None:
                future.result()
            state = {"app": AppState(model, optimizer)}
            future = dcp.async_save(
                state, checkpoint_id=f"{folder[0]}/step{step}", process_group=saving
            )
    future.result()
    dcp.load({"app": AppState(model, optimizer)}, checkpoint_id=f"{folder[0]}/step2")
    torch.manual_seed(3)
    again = model(torch.rand(8, 16)).sum().item()
    print("RESULT", json.dumps([dist.get_rank(), losses[3], again]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
