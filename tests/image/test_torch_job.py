"""A PyTorch job of two replicas, from a base without PyTorch, over a Docker network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.image.builders.append import build
from distrain_nb.image.recipe import Recipe
from distrain_nb.program import Cell, Notebook, capture

from .services.bases import CACHE
from .test_docker_runs import run_two

if TYPE_CHECKING:
    import pytest

    from .services.docker import Docker

TRAINING = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(8, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print("rank", rank, "sum", total.item(), "weights", model.module.weight.detach().tolist())
"""


def test_two_replicas_train_together(
    docker: Docker, base: str, open_registry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRAIN_HOME", str(CACHE / "home"))  # packing PyTorch takes a while
    program = capture(Cell("Cell In[1]", TRAINING), 1, Notebook({}, (), Path.cwd()))
    image = build(program, Recipe(base, f"{open_registry}/runs/torch:1"))
    assert "torch==2.13.0" in image.labels["distrain-nb.packages"]
    said = run_two(docker, image)
    assert "rank 0 sum 3.0" in said["workerpool0"]
    assert "rank 1 sum 3.0" in said["workerpool1"]
    weights = {text.partition("weights ")[2].splitlines()[0] for text in said.values()}
    assert len(weights) == 1
