"""Accelerate: prepare, gather for metrics, gradient accumulation.

%%distrain -n 2
torchrun --nproc-per-node 2
"""

import json

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# %%
config = {"lr": 0.05, "num_epochs": 2, "seed": 42, "batch_size": 8}


def get_dataloaders(batch_size):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(70, 4, generator=generator)
    data = TensorDataset(x, (x.sum(dim=1) > 0).float())
    return DataLoader(data, batch_size=batch_size), DataLoader(data, batch_size=batch_size)


# %%
def training_function(config):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(config["seed"])
    train_loader, eval_loader = get_dataloaders(config["batch_size"])
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    model, optimizer, train_loader, eval_loader = accelerator.prepare(
        model, optimizer, train_loader, eval_loader
    )
    for _ in range(config["num_epochs"]):
        model.train()
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
    right, seen = 0, 0
    model.eval()
    for x, y in eval_loader:
        with torch.no_grad():
            predicted = (model(x).squeeze(1) > 0).float()
        predicted, y = accelerator.gather_for_metrics((predicted, y))
        right += (predicted == y).sum().item()
        seen += len(y)
    found = [accelerator.process_index, accelerator.num_processes, right, seen]
    print("RESULT", json.dumps(found))
    accelerator.end_training()


training_function(config)
