"""The bytes of tensors by kind, as a rank that runs alone counts them."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """\
import json, torch
from torch.utils._python_dispatch import TorchDispatchMode
from distrain_nb.worker.rank.dry_memory import TensorMemory

optimizers = []
memory = TensorMemory(lambda: optimizers)
memory.watch()

class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        result = operation(*arguments, **(named or {}))
        memory.note(result)
        return result

with Operations():
    data = torch.randn(64, 256)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256, bias=False), torch.nn.ReLU())
    optimizers.append(torch.optim.Adam(model.parameters(), foreach=False))
    for step in range(2):
        model(data).square().sum().backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
        memory.step_ends()
print(json.dumps([memory.peak(), memory.peak_step]))
"""


def test_the_peak_is_told_apart_by_kind() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    kinds, _ = json.loads(printed.stdout)
    matrix, rows = 4 * 256 * 256, 4 * 64 * 256
    assert kinds["parameters"] == kinds["gradients"] == matrix
    assert 2 * matrix <= kinds["optimizer"] <= 2 * matrix + 64  # and a count of steps
    assert rows <= kinds["other"] <= 1.1 * rows  # the data
    assert 0 < kinds["activations"] <= 2.2 * matrix
