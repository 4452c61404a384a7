"""Accelerate: a state that is saved and resumed, a scheduler, early stopping by a trigger.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import argparse
import json
import os
import tempfile

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import ProjectConfiguration, broadcast_object_list, set_seed
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

# %%
config = {"lr": 0.1, "num_epochs": 3, "seed": 1, "batch_size": 4}
kwargs = DistributedDataParallelKwargs(find_unused_parameters=True)


class RegressionDataset(Dataset):
    def __init__(self, a=2, b=3, length=32):
        generator = torch.Generator().manual_seed(96)
        self.x = torch.randn(length, generator=generator)
        self.y = a * self.x + b

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


class RegressionModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(0.5))
        self.b = torch.nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        return x * self.a + self.b


# %%
def training_function(config, args):
    folder = [tempfile.mkdtemp()]
    accelerator = Accelerator(
        cpu=args.cpu,
        kwargs_handlers=[kwargs],
        project_config=ProjectConfiguration(automatic_checkpoint_naming=True),
    )
    broadcast_object_list(folder)
    accelerator.project_configuration.set_directories(folder[0])
    set_seed(config["seed"])
    model = RegressionModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    schedule = LambdaLR(optimizer, lr_lambda=lambda step: 0.9**step)
    loader = DataLoader(RegressionDataset(), batch_size=config["batch_size"], shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for epoch in range(config["num_epochs"]):
        for batch in loader:
            loss = (model(batch["x"]) - batch["y"]).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.reduce(loss.detach(), reduction="mean").item())
        accelerator.save_state()
        if accelerator.is_main_process and epoch == 1:
            accelerator.set_trigger()
        if accelerator.check_trigger():
            break
    accelerator.wait_for_everyone()
    accelerator.load_state(os.path.join(folder[0], "checkpoints", "checkpoint_0"))
    weights = accelerator.unwrap_model(model)
    found = [accelerator.process_index, losses, weights.a.item(), schedule.get_last_lr()]
    print("RESULT", json.dumps(found))
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser(description="Simple example of training script.")
    parser.add_argument("--cpu", action="store_true", default=True)
    training_function(config, parser.parse_args())


if __name__ == "__main__":
    main()
