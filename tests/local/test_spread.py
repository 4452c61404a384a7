"""A program that is spread over cells knows its world, whatever the kernel's objects knew."""

from __future__ import annotations

from distrain_nb import api
from tests.kernels import Kernel

PREPARED = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import TrainingArguments

torch.manual_seed(1)
args = TrainingArguments("out", use_cpu=True, report_to=[])
args.learning_rate = 0.25
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
print(args.world_size, accelerator.num_processes, len(loader))
"""
TRAINED = """%%distrain -n 2 --result told
first = model.module.weight.tolist()
for (x,) in loader:
    optimizer.zero_grad()
    accelerator.backward(model(x).sum())
    optimizer.step()
told = [args.world_size, args.learning_rate, accelerator.num_processes, len(loader), first]
"""


def test_what_the_kernel_prepared_alone_is_prepared_in_every_rank(nb: Kernel) -> None:
    prepared = nb.run(PREPARED, 240)
    assert "1 1 8" in prepared.text, prepared.traceback
    weights = nb.run("torch.manual_seed(1)\nprint(torch.nn.Linear(2, 1).weight.tolist())").text
    outcome = nb.run(TRAINED, 240)
    assert not outcome.error, outcome.traceback
    run = api.attach()
    assert run.results["told"][:4] == [2, 0.25, 2, 4]
    assert str(run.results["told"][4]) == weights.strip()
    assert not run.status.note


def test_a_model_that_trained_in_a_world_of_one_is_refused(nb: Kernel) -> None:
    assert not nb.run(PREPARED, 240).error
    assert not nb.run(TRAINED.partition("\n")[2].replace(".module", ""), 240).error
    outcome = nb.run(TRAINED, 240)
    assert "[capture.process-bound]" in outcome.traceback
    assert "`model` (Linear) was created in the notebook, a world of 1" in outcome.traceback
    assert "In[3], line 2 has changed it since" in outcome.traceback
