"""A cell that names its strategy by a parameter: advice, and processes, are for that strategy."""

from __future__ import annotations

from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.program.advice import avoids_nccl, findings, one_process
from distrain_nb.worker.rank.program import Segment

IFS = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.distributed.fsdp import FullyShardedDataParallel

if strategy != "dp":
    dist.init_process_group("nccl" if strategy == "fsdp" else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
model = torch.nn.Linear(4, 2).cuda()
if strategy == "dp":
    model = DataParallel(model)
elif strategy == "ddp":
    model = DistributedDataParallel(model.to(device))
elif strategy in ("fsdp", "sharded"):
    model = FullyShardedDataParallel(model, device_id=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 4)).sum()
loss.backward()
optimizer.step()
if not strategy == "dp" and dist.get_rank() == 0:
    state = model.state_dict()
    torch.save(state, "model.pt")
"""
MATCH = IFS.replace(
    """if strategy == "dp":
    model = DataParallel(model)
elif strategy == "ddp":
    model = DistributedDataParallel(model.to(device))
elif strategy in ("fsdp", "sharded"):
    model = FullyShardedDataParallel(model, device_id=device)
""",
    """match strategy:
    case "dp":
        model = DataParallel(model)
    case "ddp" | "distributed":
        model = DistributedDataParallel(model.to(device))
    case _:
        model = FullyShardedDataParallel(model, device_id=device)
""",
)


def codes(source: str, strategy: str) -> set[str]:
    found = findings(f'strategy = "{strategy}"\n{source}', "Cell In[1]")
    return {each.code.removeprefix("advice.") for each in found}


@pytest.mark.parametrize("source", [IFS, MATCH])
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("dp", {"one-process"}), ("ddp", set[str]()), ("fsdp", {"fsdp.state-dict"})],
)
def test_advice_is_for_the_strategy_that_is_named(
    source: str, strategy: str, expected: set[str]
) -> None:
    assert codes(source, strategy) == expected


def test_lines_are_those_of_the_cell() -> None:
    (found,) = findings(f'strategy = "dp"\n{IFS}', "Cell In[1]")
    before = IFS[: IFS.index("= DataParallel")]
    assert found.where == f"Cell In[1], line {before.count(chr(10)) + 2}"


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_the_exchange_is_the_named_strategys(strategy: str) -> None:
    expected = {"ddp": "gloo", "fsdp": ""}[strategy]
    assert avoids_nccl(f'strategy = "{strategy}"\n{IFS}') == expected


@pytest.mark.parametrize(
    "again",
    [
        'strategy = choose()\n',
        'def main(strategy):\n    pass\n',
        'for strategy in ("dp", "ddp"):\n    pass\n',
        'import strategy\n',
        'with here() as strategy:\n    pass\n',
    ],
)  # fmt: skip
def test_a_name_that_is_set_elsewhere_too_rules_nothing_out(again: str) -> None:
    source = f'strategy = "dp"\n{again}{IFS}'
    assert "one-process" not in {f.code.removeprefix("advice.") for f in findings(source, "Cell")}


def test_a_name_that_trials_give_values_rules_nothing_out() -> None:
    source = f'strategy = "dp"\n{IFS}'
    segments = (Segment(1, source.count("\n"), "Cell In[1]", 1, is_cell=True),)
    assert one_process(source, segments) != ()
    assert one_process(source, segments, {"strategy": "str"}) == ()


@pytest.mark.parametrize(("strategy", "ranks"), [("dp", 1), ("ddp", 4), ("fsdp", 4)])
def test_each_strategy_gets_its_processes(home: Path, strategy: str, ranks: int) -> None:
    prepared = api.prepare(
        f"import os\n{IFS}",
        on="vertex",
        primary="n1-standard-16+4*T4",
        param=f"strategy={strategy}",
    )
    assert prepared.plan.ranks_per_replica == ranks
