"""A run with reducers: the sums are gloo's, and whoever fails is named."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from distrain_nb import api
from distrain_nb.errors import CheckFailed, RunFailed
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

ways = [dict(steps=200), dict(steps=10, unused=True), dict(steps=12, accumulate=3)]
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

ENDLESS = """
import datetime, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 1000))
step = 0
while True:
    step += 1
    model(torch.ones(2, 1000)).sum().backward()
    if dist.get_rank() == 0:
        print("step", step, flush=True)
    if step == 3:
        gloo = dist.group.WORLD._get_backend(torch.device("cpu"))
        gloo.options._timeout = datetime.timedelta(seconds={timeout})
"""


def pid_of(run: Run, label: str) -> int:
    return next(p.pid for p in run.status.processes if p.label == label)


def steps(run: Run) -> int:
    return run.logs(0).count("step")


def endless(timeout: float = 600) -> Run:
    """A run that has begun to train."""
    run = api.submit(ENDLESS.format(timeout=timeout), workers=1, reducers=2)
    assert eventually(lambda: steps(run) > 3 or run.status.state.final)
    return run


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
    assert "reduction: " in run.logs(0) and " by 2 reducers; 20 (" in run.logs(0)
    assert run.logs().count(" sums; ") == 2


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
            "again": [3.0], "weight": [3.0, 3.0],
        }  # fmt: skip
    said = next(line for line in run.logs(0).splitlines() if "reduction: " in line)
    assert said.endswith("as usual: 1 MAX, 1 empty, 1 of int32")


DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "complex64")


def test_reducers_sum_for_workers_that_may_finish(home: Path) -> None:
    run = api.submit(GOES_ON, workers=2, reducers=1)
    assert eventually(lambda: "reduction: " in run.logs(0))
    (run.folder / "model" / "go").touch()
    run.wait(240)
    assert run.logs().count("sum 2.0") == 2


def test_a_reducer_that_is_killed_fails_the_run_by_its_name(home: Path) -> None:
    run = endless()
    os.kill(pid_of(run, "reducer 1"), signal.SIGKILL)
    with pytest.raises(RunFailed, match="reducer 1 failed first: killed by SIGKILL"):
        run.wait(240)


def test_a_reducer_that_stops_is_named_when_the_group_s_time_is_over(home: Path) -> None:
    run = endless(timeout=8)
    os.kill(pid_of(run, "reducer 0"), signal.SIGSTOP)
    with pytest.raises(RunFailed, match=r"reducer 0 \(127.0.0.1:\d+\) did not answer in time"):
        run.wait(240)


def test_a_reducer_that_was_stopped_for_a_while_goes_on(home: Path) -> None:
    run = endless()
    os.kill(pid_of(run, "reducer 0"), signal.SIGSTOP)
    before = steps(run)
    os.kill(pid_of(run, "reducer 0"), signal.SIGCONT)
    assert eventually(lambda: steps(run) > before + 3)
    run.cancel()


def test_a_rank_that_is_killed_among_reductions_is_named(home: Path) -> None:
    run = endless()
    os.kill(pid_of(run, "rank 1"), signal.SIGKILL)
    with pytest.raises(RunFailed, match="rank 1 failed first: killed by SIGKILL"):
        run.wait(240)


def test_reducers_are_refused_where_nothing_would_be_summed(home: Path) -> None:
    with pytest.raises(CheckFailed, match="reducers sum for torch"):
        api.submit("print(1)", workers=1, reducers=1)


def test_ranks_that_leave_the_reducers_nothing_to_do_worked_alone(home: Path) -> None:
    with pytest.warns(UserWarning, match="worked alone"):
        run = api.submit("import torch", workers=1, reducers=1, wait=True)
    assert "torch.distributed was never initialized" in run.status.note
