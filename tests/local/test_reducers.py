"""A run with reducers: the sums are gloo's."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api
from distrain_nb.config import Config
from distrain_nb.errors import CheckFailed
from tests.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from distrain_nb.run import Run
    from tests.kernels import Kernel

# Two ranks, whose sums have one order. With no exchange, a group's backend does it all.
TRAINS = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()

class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(50, 200), torch.nn.Linear(200, 3)
        self.middle = torch.nn.ModuleList(torch.nn.Linear(200, 200) for _ in range(2))

    def forward(self, x, branch):
        return self.last(self.middle[branch](self.first(x).relu()).relu())

def train(steps, unused=False, accumulate=1):
    torch.manual_seed(0)
    model = DistributedDataParallel(
        Branches() if unused else torch.nn.Sequential(*small()),
        find_unused_parameters=unused, bucket_cap_mb=0.02,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    random = torch.Generator().manual_seed(rank)
    for step in range(steps):
        x, y = torch.randn(4, 50, generator=random), torch.randint(3, (4,), generator=random)
        def backward():
            out = model(x, step % 2) if unused else model(x)
            torch.nn.functional.cross_entropy(out, y).backward()
        if (step + 1) % accumulate:
            with model.no_sync():
                backward()
        else:
            backward()
            optimizer.step()
            optimizer.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()])

def small():
    sizes = [50, 400, 7, 600, 3]
    for a, b in zip(sizes, sizes[1:]):
        yield torch.nn.Linear(a, b)
        yield torch.nn.Tanh()

ways = [dict(steps=50), dict(steps=50, unused=True), dict(steps=200, accumulate=4)]
reduced = [train(**way) for way in ways]
exchange, dist.group.WORLD._exchange = dist.group.WORLD._exchange, None
by_gloo = [train(**way) for way in ways]
dist.group.WORLD._exchange = exchange
equal = [torch.equal(a, b) for a, b in zip(reduced, by_gloo)]
same = []
for weights in reduced:
    others = [torch.empty_like(weights) for _ in range(2)]
    dist.all_gather(others, weights)
    same.append(torch.equal(*others))
trained = not torch.equal(reduced[0], reduced[2])
"""

BY_HAND = """
import datetime
import torch, torch.distributed as dist
from torch.distributed._functional_collectives import reduce_scatter_single
dist.init_process_group("gloo")
rank, seen = dist.get_rank(), {}

def total(tensor, **how):
    dist.all_reduce(tensor, **how)
    return tensor.tolist()

for name in ("float32", "float64", "float16", "bfloat16", "int32", "complex64"):
    seen[name] = total(torch.full((3,), rank + 1, dtype=getattr(torch, name)))
seen["mean"] = total(torch.tensor([rank + 0.5]), op=dist.ReduceOp.AVG)
seen["max"] = total(torch.tensor([float(rank)]), op=dist.ReduceOp.MAX)
seen["scalar"] = total(torch.tensor(float(rank)))
matrix = torch.arange(6.0).reshape(2, 3) * (rank + 1)
seen["transposed"] = total(matrix.t())
seen["there"] = matrix.tolist()
seen["empty"] = total(torch.empty(0))
tensors = [torch.full((n,), float(rank)) for n in (1, 70_000, 300_000)]
works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
results = [work.get_future().wait() for work in works]
seen["async"] = [float(t.min()) for t in tensors] + [float(r[0].max()) for r in results]
seen["done"] = [work.wait() and work.is_completed() and work.is_success() for work in works]
seen["late"] = works[0].wait(datetime.timedelta(seconds=5))
pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
mine = [pair for pair in pairs if dist.get_rank(pair) >= 0]
seen["pairs"] = [total(torch.tensor([10.0 ** rank]), group=pair) for pair in mine]
ones, part = torch.ones(3), torch.empty(1)
dist.reduce(ones.clone(), 0)
dist.reduce_scatter_tensor(part, ones)
dist.reduce_scatter(part, list(ones.split(1)))
reduce_scatter_single(ones, "sum", 0, dist.group.WORLD).tolist()
seen["scattered"] = part.tolist()
dist.all_reduce_coalesced([ones.clone(), part])
for turn in range(2):
    group = dist.new_group([0, 1, 2])
    seen["again"] = total(torch.tensor([1.0]), group=group)
    dist.destroy_process_group(group)
with torch.no_grad():
    weight = torch.nn.Parameter(torch.ones(2))
    seen["weight"] = total(weight)
gathered = [None] * 3
dist.all_gather_object(gathered, seen)
dist.barrier()
dist.destroy_process_group()
"""

# The others go on when the primary has ended.
GOES_ON = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
pair = dist.new_group([1, 2])
dist.all_reduce(torch.ones(1))
if dist.get_rank():
    import time
    while not os.path.exists(os.environ["AIP_MODEL_DIR"] + "/go"):
        time.sleep(0.05)
    last = torch.ones(1)
    dist.all_reduce(last, group=pair)
    print("sum", last.item(), flush=True)
"""

WAITS = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print("sum", total.item(), flush=True)
while not os.path.exists(os.environ["AIP_MODEL_DIR"] + "/go"):
    time.sleep(0.05)
"""

# Pairs, whose sums have one order, and the world, whose ring adds in another: in float64.
GROUPS = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
pairs = [dist.new_group([first, first + 1]) for first in range(0, world, 2)]
pair = pairs[rank // 2]

def train(steps):
    torch.manual_seed(0)
    mine = torch.nn.Sequential(torch.nn.Linear(20, 700), torch.nn.Tanh(), torch.nn.Linear(700, 30))
    all_s = torch.nn.Linear(30, 500, dtype=torch.float64)
    models = [
        DistributedDataParallel(mine, process_group=pair, bucket_cap_mb=0.02),
        DistributedDataParallel(all_s, bucket_cap_mb=0.02),
    ]
    weights = [*mine.parameters(), *all_s.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0.05, momentum=0.9)
    random = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        hidden = models[0](torch.randn(4, 20, generator=random))
        models[1](hidden.double()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [torch.cat([p.detach().flatten() for p in m.parameters()]) for m in models]

reduced = train(50)
exchanges = {group: group._exchange for group in (pair, dist.group.WORLD)}
for group in exchanges:
    group._exchange = None
by_gloo = train(50)
for group, exchange in exchanges.items():
    group._exchange = exchange
equal = [torch.equal(reduced[0], by_gloo[0]), torch.allclose(reduced[1], by_gloo[1], 1e-9, 1e-12)]
for weights, group in ((reduced[0], pair), (reduced[1], None)):
    others = [torch.empty_like(weights) for _ in range(dist.get_world_size(group))]
    dist.all_gather(others, weights, group=group)
    equal.append(all(torch.equal(weights, other) for other in others))
first = [None] * world
dist.all_gather_object(first, reduced[0][0].item())
seen = [None] * world
dist.all_gather_object(seen, equal)
apart = len(set(first))
dist.destroy_process_group()
"""

# Each gradient is scattered in one dimension of the mesh and added up in the other, between two.
HYBRID = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
replicas = mesh.get_group("replicate")

def train(steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(50, 70), torch.nn.Tanh(), torch.nn.Linear(70, 3))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    random = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        model(torch.randn(4, 50, generator=random)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([p.detach().full_tensor().flatten() for p in model.parameters()])

reduced = train(20)
exchange, replicas._exchange = replicas._exchange, None
equal = torch.equal(reduced, train(20))
replicas._exchange = exchange
dist.destroy_process_group()
"""


def test_a_cell_trains_to_the_same_weights_with_reducers_as_with_gloo(nb: Kernel) -> None:
    options = "--workers 1 --reducers 2 --result equal --result same --result trained"
    outcome = nb.run(f"%%distrain {options}\n{TRAINS}", 240)
    assert not outcome.error, outcome.traceback
    run = api.attach()
    assert run.results == {"equal": [True] * 3, "same": [True] * 3, "trained": True}
    assert {p.label: p.outcome for p in run.status.processes} == {
        "rank 0": "succeeded", "rank 1": "succeeded",
        "reducer 0": "succeeded", "reducer 1": "succeeded",
    }  # fmt: skip
    assert not run.status.note
    assert "all-reduces (" in run.logs(0) and "without reducers" in run.logs(0)
    assert len(sums := sums_of_reducers(run)) == 2 and min(sums) >= 150


@pytest.mark.stands_for("reducers")
def test_whatever_is_reduced_by_hand(home: Path) -> None:
    run = api.submit(BY_HAND, workers=2, reducers=3, result=("gathered",), wait=True)
    for rank, seen in enumerate(run.results["gathered"]):
        pairs = [[[11.0]], [[11.0], [110.0]], [[110.0]]]
        assert seen.pop("pairs") == pairs[rank]
        assert seen == {
            **{name: [6] * 3 for name in DTYPES},
            "mean": [1.5], "max": [2.0], "scalar": 3.0, "empty": [],
            "transposed": [[0.0, 18.0], [6.0, 24.0], [12.0, 30.0]],
            "there": [[0.0, 6.0, 12.0], [18.0, 24.0, 30.0]],
            "async": [3.0] * 6, "done": [True] * 3, "late": True,
            "again": [3.0], "scattered": [3.0], "weight": [3.0, 3.0],
        }  # fmt: skip
    said = next(line for line in run.logs(0).splitlines() if "reduction: " in line)
    assert said.endswith(
        "as usual: 1 MAX, 1 by reduce, 3 by reduce-scatter, 1 empty, 1 of int32, "
        "1 of several tensors"
    )
    assert len(sums := sums_of_reducers(run)) == 3 and min(sums) >= 10


DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "complex64")


def sums_of_reducers(run: Run) -> list[int]:
    """How many sums each says that it has made."""
    return [int(n) for n in re.findall(r"reducer \d: (\d+) sums; ", run.logs().replace(",", ""))]


def test_reducers_sum_for_workers_that_may_finish(home: Path) -> None:
    run = api.submit(GOES_ON, workers=2, reducers=1)
    assert eventually(lambda: "reduction: " in run.logs(0))
    (run.folder / "model" / "go").touch()
    run.wait(240)
    assert run.logs().count("sum 2.0") == 2


def test_reducers_that_get_no_time_to_end_still_say_what_they_have_done(home: Path) -> None:
    run = api.submit(WAITS, workers=1, reducers=1)
    assert eventually(lambda: run.logs().count("sum 2.0") == 2)
    (reducer,) = [p.pid for p in run.status.processes if p.label == "reducer 0"]
    assert reducer
    os.kill(reducer, signal.SIGSTOP)
    (run.folder / "model" / "go").touch()
    assert eventually(lambda: all(p.outcome for p in run.status.processes[:2]))
    time.sleep(3 * Config.load().grace)
    os.kill(reducer, signal.SIGCONT)
    run.wait(60)
    assert [p.outcome for p in run.status.processes] == ["succeeded"] * 3
    assert run.logs().count(" sums; ") == 1


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
def test_where_there_are_no_gpus_gloo_takes_the_place_of_nccl(home: Path, backend: str) -> None:
    code = f"""
import torch, torch.distributed as dist
dist.init_process_group("{backend}")
total = torch.ones(1)
dist.all_reduce(total)
total = total.item()
"""
    run = api.submit(code, workers=1, reducers=1, result=("total",), wait=True)
    assert run.results == {"total": 2.0}
    assert "no GPUs here, so gloo is used instead of nccl" in run.logs(0)
    assert sums_of_reducers(run) == [1]


def test_groups_of_some_ranks_and_of_all_train_side_by_side_as_by_gloo(home: Path) -> None:
    run = api.submit(GROUPS, ranks_per_replica=8, reducers=4, result=("seen", "apart"), wait=True)
    assert run.results == {"seen": [[True] * 4] * 8, "apart": 4}
    assert len(sums := sums_of_reducers(run)) == 4 and min(sums) >= 50


def test_hybrid_sharding_adds_up_between_its_groups_by_the_reducers(home: Path) -> None:
    run = api.submit(HYBRID, ranks_per_replica=4, reducers=2, result=("equal",), wait=True)
    assert run.results == {"equal": True}
    assert "reduction: 20 all-reduces (" in run.logs(0)
    assert "40 by reduce-scatter, 20 without reducers" in run.logs(0)
    assert len(sums := sums_of_reducers(run)) == 2 and min(sums) >= 20


@pytest.mark.parametrize(
    ("code", "launcher"),
    [("print(1)", "python"), ("import tensorflow", "tensorflow"), ("import mpi4py.MPI", "mpi")],
)
def test_reducers_are_refused_where_nothing_would_be_summed(
    home: Path, code: str, launcher: str
) -> None:
    said = f"reducers sum for torch.distributed: leave --reducers out with launcher {launcher}"
    with pytest.raises(CheckFailed, match=said):
        api.submit(code, workers=1, reducers=1)


def test_ranks_that_leave_the_reducers_nothing_to_do_worked_alone(home: Path) -> None:
    with pytest.warns(UserWarning, match="worked alone"):
        run = api.submit("import torch", workers=1, reducers=1, wait=True)
    assert "torch.distributed was never initialized" in run.status.note
