"""A program may let go of what it trained with, whatever its threads are doing."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from distrain_nb import api
from distrain_nb.worker.rank import process_groups

# The thread of a group ends when the group is taken apart.
TRAINS = """
import gc, pathlib, torch, torch.distributed as dist
{earlier}

def train():
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()

train()
gc.collect()
names = [(task / "comm").read_text().strip() for task in pathlib.Path("/proc/self/task").iterdir()]
left = "pt_gloo_runloop" in names
"""


@pytest.mark.parametrize("earlier", ["", "from torch.distributed import *"])
def test_a_destroyed_group_is_not_taken_apart_while_its_rank_works(
    home: Path, earlier: str
) -> None:
    run = api.submit(
        TRAINS.format(earlier=earlier), ranks_per_replica=2, result=("left",), wait=True
    )
    assert run.results["left"]


def test_a_pytorch_that_keeps_its_groups_elsewhere_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As version 1 did, which containers for training still have."""
    name = "torch.distributed.distributed_c10d"
    older = ModuleType(name)
    vars(older)["destroy_process_group"] = destroy = object()
    monkeypatch.setitem(sys.modules, name, older)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    process_groups.keep()
    assert vars(older)["destroy_process_group"] is destroy
