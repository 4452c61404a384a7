"""Advice about data that is iterated over and about FSDP, and what PyTorch itself says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb.program.advice import findings

if TYPE_CHECKING:
    from distrain_nb.findings import Finding

pytestmark = pytest.mark.slow

HEAD = """\
import os, torch, torch.distributed as dist, webdataset as wds, datasets
from torch.utils.data import DataLoader, IterableDataset, DistributedSampler
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
dist.init_process_group("gloo")
"""
DDP = "model = torch.nn.parallel.DistributedDataParallel(Net())\n"
LINES = "class Lines(IterableDataset):\n    def __iter__(self): return iter(range(9))\n"
SHARED = LINES.replace("range(9)", "range(dist.get_rank(), 9, dist.get_world_size())")

NOT_SHARED = {
    "class": (f"{LINES}loader = DataLoader(Lines())", "itertools.islice(items, int(os.environ"),
    "class with a base of ours": (
        f"{LINES}class More(Lines): pass\ndata = More()\nloader = DataLoader(data)",
        "itertools.islice",
    ),
    "given a sampler": (
        f"{LINES}data = Lines()\nloader = DataLoader(data, sampler=DistributedSampler(data))",
        "takes no sampler",
    ),
    "stream": (
        "data = datasets.load_dataset('c4', streaming=True)['train'].shuffle()\n"
        "loader = DataLoader(data)",
        "split_dataset_by_node(dataset, rank=",
    ),
    "webdataset": (
        "data = wds.WebDataset(urls).shuffle(9)\nloader = DataLoader(data)",
        "nodesplitter=wds.split_by_node",
    ),
    "webdataset by worker": (
        "data = wds.WebDataset(urls, workersplitter=wds.split_by_worker)\n"
        "loader = wds.WebLoader(data)",
        "nodesplitter=wds.split_by_node",
    ),
    "pipeline by worker": (
        "data = wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_worker)\n"
        "loader = DataLoader(data)",
        "put wds.split_by_node behind",
    ),
}
SPLIT = {
    "class": f"{SHARED}loader = DataLoader(Lines())",
    "stream": "data = datasets.load_dataset('c4', streaming=True)['train']\n"
    "data = datasets.distributed.split_dataset_by_node(data, dist.get_rank(), 2)\n"
    "loader = DataLoader(data)",
    "webdataset": "data = wds.WebDataset(urls, nodesplitter=wds.split_by_node).shuffle(9)\n"
    "loader = DataLoader(data)",
    "pipeline": "data = wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_node)\n"
    "loader = wds.WebLoader(data)",
}


def advice(code: str) -> list[Finding]:
    return list(findings(HEAD + code, "Cell In[1]"))


@pytest.mark.parametrize(("code", "write"), NOT_SHARED.values(), ids=NOT_SHARED)
def test_data_without_a_length_is_never_given_a_sampler(code: str, write: str) -> None:
    (found,) = advice(DDP + code)
    assert found.code == "advice.ddp.iterable"
    assert write in found.message
    assert "DistributedSampler(" not in found.message


@pytest.mark.parametrize("code", SPLIT.values(), ids=SPLIT)
def test_data_that_ranks_share_gets_no_advice(code: str) -> None:
    assert advice(DDP + code) == []


GATHER = (
    "get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))"
)


@pytest.mark.parametrize(
    ("code", "write"),
    [
        (
            "model = FSDP(Net())\ntorch.save(model.state_dict(), 'm.pt')",
            "on every rank, state = model.state_dict(), then if",
        ),
        (
            "model = FSDP(Net())\nif dist.get_rank() == 0:\n"
            "    torch.save({'model': model.state_dict()}, 'm.pt')",
            "call state_dict() on every rank",
        ),
        (
            "model = FSDP(Net())\nif dist.get_rank() == 0:\n"
            "    state = FSDP.optim_state_dict(model, optimizer)",
            "call optim_state_dict() on every rank",
        ),
        ("model = Net()\nfully_shard(model)\ntorch.save(model.state_dict(), 'm.pt')", GATHER),
        (
            "model = Net()\nfully_shard(model)\nif dist.get_rank() == 0:\n"
            "    torch.save(model.state_dict(), 'm.pt')",
            GATHER,
        ),
    ],
)
def test_the_state_of_shards_is_gathered_on_every_rank(code: str, write: str) -> None:
    (found,) = advice(code)
    assert found.code == "advice.fsdp.state-dict"
    assert write in found.message


@pytest.mark.parametrize(
    "code",
    [
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\nmodel = FSDP(net)",
        "net = Net()\nweights = list(net.parameters())\n"
        "opt = torch.optim.Adam(weights)\nmodel = FSDP(net)",
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\n"
        "for block in net.blocks: fully_shard(block)\nfully_shard(net)",
    ],
)
def test_an_optimizer_from_before_fsdp_is_found(code: str) -> None:
    (found,) = advice(code)
    assert found.code == "advice.fsdp.optimizer"
    assert found.message.endswith(("make it after FSDP(net)", "make it after fully_shard(net)"))


@pytest.mark.parametrize(
    "code",
    [
        "net = Net()\nmodel = FSDP(net)\nopt = torch.optim.Adam(model.parameters())",
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\n"
        "model = FSDP(net, use_orig_params=True)",
        "net = Net()\nopt = torch.optim.Adam(other.parameters())\nmodel = FSDP(net)",
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\nmodel = FSDP(net)\n"
        "opt = torch.optim.Adam(model.parameters())",
    ],
)
def test_other_optimizers_are_left_alone(code: str) -> None:
    assert advice(code) == []


FACTS = """
import json
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset

class Lines(IterableDataset):
    def __iter__(self): return iter(range(9))
    def __len__(self): return 9

def refused():
    try:
        DataLoader(Lines(), sampler=DistributedSampler(Lines()))
    except ValueError as error:
        return str(error)

def trains(wrap):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model = wrap(model)
    before = [weight.detach().clone() for weight in model.parameters()]
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return any(bool((old != new).any()) for old, new in zip(before, model.parameters()))

def gathers(wrap):
    model = wrap(torch.nn.Linear(4, 2))
    with CommDebugMode() as counted:
        model.state_dict()
    return counted.get_total_counts() > 0

def alone(store, size):
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", store=store, rank=0, world_size=size)
    mesh, cpu = init_device_mesh("cpu", (size,)), torch.device("cpu")
    return {
        "FSDP": lambda model: FSDP(model, device_id=cpu),
        "FSDP, use_orig_params": lambda model: FSDP(model, device_id=cpu, use_orig_params=True),
        "fully_shard": lambda model: fully_shard(model, mesh=mesh),
    }

told = {name: trains(wrap) for name, wrap in alone(FakeStore(), 1).items()}
wraps = alone(FakeStore(), 2)
told["refused"] = refused()
told["gathers"] = [name for name, wrap in wraps.items() if gathers(wrap)]
print(json.dumps(told))
"""


def test_pytorch_behaves_as_the_advice_says() -> None:
    ran = subprocess.run([sys.executable, "-c", FACTS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert "expected unspecified sampler option" in told.pop("refused")
    assert told.pop("gathers") == ["FSDP", "FSDP, use_orig_params"]
    assert told == {"FSDP": False, "FSDP, use_orig_params": True, "fully_shard": False}
