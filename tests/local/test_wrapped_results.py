"""Results that are wrapped or sharded: the module inside comes back, or the line to write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from distrain_nb import api
from distrain_nb.errors import CaptureError

START = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)
"""
END = "\ndist.destroy_process_group()\n"
SHARD = """
from torch.distributed.fsdp import fully_shard
model = nn.Linear(4, 2)
"""


@pytest.mark.parametrize(
    "wrap",
    [
        "nn.parallel.DistributedDataParallel(nn.Linear(2, 1))",
        "nn.DataParallel(nn.Linear(2, 1))",
        "__import__('lightning').fabric.Fabric(accelerator='cpu').setup(nn.Linear(2, 1))",
    ],
)
def test_the_module_in_a_wrapper_comes_back(home: Path, wrap: str) -> None:
    code = f"{START}model = {wrap}\nboth = {{'models': [model]}}\nw = model.module.weight{END}"
    result = api.submit(code, wait=True, result="model,both,w").results
    assert type(result["model"]) is torch.nn.Linear
    assert torch.equal(result["model"].weight, result["w"])
    assert type(result["both"]["models"][0]) is torch.nn.Linear


@pytest.mark.parametrize("last", ["model = FSDP(nn.Linear(4, 2))", "fully_shard(model)"])
def test_a_sharded_result_is_refused_before_the_start(home: Path, last: str) -> None:
    with pytest.raises(CaptureError, match=r"get_model_state_dict\(model, .*full_state_dict=True"):
        api.submit(f"{START}{SHARD}{last}{END}", result="model")


def test_what_is_gathered_from_shards_comes_back(home: Path) -> None:
    gather = """
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
fully_shard(model)
options = StateDictOptions(full_state_dict=True, cpu_offload=True)
weights = get_model_state_dict(model, options=options)
"""
    code = f"{START}{SHARD}{gather}{END}"
    run = api.submit(code, wait=True, result="weights", ranks_per_replica=2)
    assert run.results["weights"]["weight"].shape == (2, 4)


def test_what_is_still_sharded_says_what_to_write(home: Path) -> None:
    code = f"{START}{SHARD}dense = [fully_shard(m) or m for m in [model]][0]\np = dense.weight{END}"
    run = api.submit(code, wait=True, result="dense,p", ranks_per_replica=2)
    with pytest.raises(ValueError, match="get_model_state_dict"):
        run.results["dense"]
    with pytest.raises(ValueError, match=r"\.full_tensor\(\)"):
        run.results["p"]


@pytest.fixture
def main_without_net() -> Iterator[None]:
    assert not hasattr(sys.modules["__main__"], "Net"), os.getpid()
    yield


def test_a_class_of_the_cell_alone_says_what_to_do(home: Path, main_without_net: None) -> None:
    code = "class Net:\n    pass\nnet = Net()"
    with pytest.raises(AttributeError, match="run its definition in a cell of its own first"):
        api.submit(code, wait=True, result="net").results["net"]
