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
    "stream": (
        "data = datasets.load_dataset('c4', streaming=True)['train'].shuffle()\n"
        "loader = DataLoader(data)",
        "split_dataset_by_node(dataset, rank=",
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


TOGETHER = "torch.distributed.checkpoint.state_dict."
PARTS = "model = Net()\nfully_shard(model)\n"
RANK_0 = "if dist.get_rank() == 0: "
SAVES = f"{RANK_0}torch.save(model.state_dict(), 'm.pt')"
ALONE = "call state_dict() on every rank"


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
        (f"{PARTS}state = model.state_dict()\ntorch.save(state, 'm.pt')", GATHER),
        (f"{PARTS}state = model.state_dict()\n{RANK_0}torch.save(state, 'm.pt')", GATHER),
        (f"{PARTS}all = {{'m': model.state_dict()}}\n{RANK_0}torch.save(all, 'm.pt')", GATHER),
        (f"{PARTS}all = {{}}\nall['m'] = model.state_dict()\n{RANK_0}torch.save(all, 'm')", GATHER),
        (
            f"{PARTS}def keep(net):\n    state = net.state_dict()\n    {RANK_0}"
            "torch.save(state, 'm.pt')\nkeep(model)",
            GATHER.replace("(model", "(net"),
        ),
        (
            "model = Net()\nif old: model = FSDP(model)\nelse: fully_shard(model)\n"
            f"{RANK_0}torch.save(model.state_dict(), 'm.pt')",
            f"or waits for the others' for ever: on every rank write state = {TOGETHER}{GATHER}",
        ),
        (f"model: FSDP = FSDP(Net())\n{SAVES}", ALONE),
        (f"model = torch.compile(FSDP(Net()).bfloat16())\n{SAVES}", ALONE),
        (f"def make(): return FSDP(Net())\nmodel = make()\n{SAVES}", ALONE),
        (
            f"def keep(net):\n    {RANK_0}torch.save(net.state_dict(), 'm.pt')\n"
            "model = FSDP(Net())\nkeep(model)",
            ALONE,
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
        f"{PARTS}from torch.distributed.checkpoint.state_dict import get_model_state_dict\n"
        f"state = get_model_state_dict(model, options=whole)\n{RANK_0}torch.save(state, 'm.pt')",
        f"{PARTS}state = {{k: v.full_tensor() for k, v in model.state_dict().items()}}\n"
        f"{RANK_0}torch.save(state, 'm.pt')",
        f"{PARTS}state = model.state_dict()\nfor name in state:\n"
        f"    state[name] = state[name].full_tensor()\n{RANK_0}torch.save(state, 'm.pt')",
        f"{PARTS}state = model.state_dict()\ntorch.save(state, f'm-{{dist.get_rank()}}.pt')",
        f"model = FSDP(Net())\nstate = model.state_dict()\n{RANK_0}torch.save(state, 'm.pt')",
        f"model = Net()\n{SAVES}\nmodel = FSDP(model)",
        f"model = Net()\n{SAVES}\nfully_shard(model)",
        f"model = Net()\nif large: model = FSDP(model)\nelif old:\n    fully_shard(model)\n"
        f"else:\n    {SAVES}",
        f"def wrap(model): return FSDP(model)\nother = wrap(Net())\nmodel = Net()\n{SAVES}",
    ],
)
def test_a_state_that_is_whole_is_left_alone(code: str) -> None:
    assert advice(code) == []


def test_the_state_of_what_is_not_sharded_needs_one_rank_only() -> None:
    (found,) = advice(f"{PARTS}warm = Warmup()\ntorch.save({{'w': warm.state_dict()}}, 'w.pt')")
    assert found.code == "advice.ddp.checkpoint"


@pytest.mark.parametrize(
    "code",
    [
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\nmodel = FSDP(module=net)",
        "net = Net()\nweights: list = list(net.parameters())\n"
        "opt = torch.optim.Adam(weights)\nmodel = FSDP(net)",
        "def make(model): return torch.optim.Adam(model.parameters())\n"
        "net = Net()\nopt = make(net)\nmodel = FSDP(net)",
        "def make(weights): return torch.optim.Adam(weights)\n"
        "net = Net()\nopt = make(net.parameters())\nmodel = FSDP(net)",
        "import bitsandbytes as bnb\nnet = Net()\nopt = bnb.optim.Adam8bit(net.parameters())\n"
        "model = FSDP(net)",
        "net = Net()\nopt = torch.optim.Muon(net.parameters())\nmodel = FSDP(net)",
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
    wraps = ("FSDP(net)", "FSDP(module=net)", "fully_shard(net)")
    assert found.message.endswith(tuple(f"make it after {wrap}" for wrap in wraps))


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("def wrap(each): return FSDP(each)\n{}\nmodel = wrap(net)", "wrap(net)"),
        ("def fit(net, opt): model = FSDP(net)\n{}\nfit(net, opt)", "FSDP(net)"),
    ],
)
def test_a_function_that_wraps_is_looked_into(code: str, after: str) -> None:
    made = "net = Net()\nopt = torch.optim.Adam(net.parameters())"
    (found,) = advice(code.format(made))
    assert found.message.endswith(f"make it after {after}")


@pytest.mark.parametrize(
    "code",
    [
        "net = Net()\nmodel = FSDP(net)\nopt = torch.optim.Adam(model.parameters())",
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\n"
        "model = FSDP(net, use_orig_params=True)",
        "net = Net()\nopt = torch.optim.Adam(other.parameters())\nmodel = FSDP(net)",
        "net = Net()\nopt = torch.optim.Adam(net.parameters())\nmodel = FSDP(net)\n"
        "opt = torch.optim.Adam(model.parameters())",
        "def make(each): return torch.optim.Adam(each.parameters())\n"
        "net, other = Net(), Other()\nfirst = make(other)\nmodel = FSDP(net)\nopt = make(model)",
        "def make(each): return torch.optim.Adam(each.parameters())\n"
        "net = Net()\nopt = make(net)\nmodel = FSDP(net)\nopt = make(model)",
        "net = Net()\nif small:\n    fit(net, torch.optim.Adam(net.parameters()))\n"
        "else:\n    net = FSDP(net)\n    fit(net, torch.optim.Adam(net.parameters()))",
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

def parts(wraps):
    state = wraps["fully_shard"](torch.nn.Linear(4, 2)).state_dict()
    return [state["weight"].numel(), state["weight"].to_local().numel()]

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
told["parts"] = parts(wraps)
print(json.dumps(told))
"""


def test_pytorch_behaves_as_the_advice_says() -> None:
    ran = subprocess.run([sys.executable, "-c", FACTS], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert "expected unspecified sampler option" in told.pop("refused")
    assert told.pop("parts") == [8, 4]
    assert told.pop("gathers") == ["FSDP", "FSDP, use_orig_params"]
    assert told == {"FSDP": False, "FSDP, use_orig_params": True, "fully_shard": False}
