"""A program may let go of what it trained with, whatever its threads are doing."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from distrain_nb import api
from distrain_nb.worker.facts import dry
from distrain_nb.worker.rank import torch_groups

# The thread of a group ends when the group is taken apart.
TRAINS = """
import gc, pathlib, tempfile, torch, torch.distributed as dist
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


SPAWNS = """
import gc, pathlib, tempfile, torch, torch.distributed as dist, torch.multiprocessing as mp

def train(rank, store):
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()
    gc.collect()
    tasks = pathlib.Path("/proc/self/task").iterdir()
    print("pt_gloo_runloop" in [(task / "comm").read_text().strip() for task in tasks])

with tempfile.TemporaryDirectory() as folder:
    mp.spawn(train, (pathlib.Path(folder, "store"),), 2)
"""


def test_nor_while_a_process_works_that_the_program_spawned(home: Path) -> None:
    log = api.submit(SPAWNS, wait=True).logs()
    assert log.count("True") == 2, log


def test_a_pytorch_that_keeps_its_groups_elsewhere_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As version 1 did, which containers for training still have."""
    name = "torch.distributed.distributed_c10d"
    older = ModuleType(name)
    vars(older)["destroy_process_group"] = destroy = object()
    monkeypatch.setitem(sys.modules, name, older)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    torch_groups.change_process_groups()
    assert vars(older)["destroy_process_group"] is destroy


# What rank 1 finds when PyTorch is about to turn to rank 0, which comes later.
MEETS = """
import importlib, os, socket, time
import torch.distributed as dist

rendezvous = importlib.import_module("torch.distributed.rendezvous")
meet = rendezvous._create_c10d_store

def looks(host, port, *others):
    if os.environ["RANK"] == "1":
        socket.create_connection((host, port)).close()
        print("somebody listens")
    return meet(host, port, *others)

rendezvous._create_c10d_store = looks
time.sleep(1 - int(os.environ["RANK"]))
dist.init_process_group("gloo")
dist.destroy_process_group()
"""


def test_a_rank_turns_to_rank_0_when_that_listens(home: Path) -> None:
    run = api.submit(MEETS, ranks_per_replica=2, wait=True)
    assert "[rank 1] somebody listens" in run.logs()


@pytest.mark.parametrize(
    ("given", "named", "awaited", "variables"),
    [
        ((), {}, True, {}),
        ((), {}, False, {dry.VARIABLE: "{}"}),  # a rank that runs alone
        (("gloo",), {"init_method": "env://", "rank": 1}, True, {}),
        ((), {"rank": 0, "world_size": 1}, False, {}),  # a world of its own
        (("mpi",), {}, False, {}),  # whose ranks know each other
        (("gloo", "tcp://127.0.0.1:1"), {}, False, {}),
        ((), {"store": object()}, False, {}),
    ],
)
def test_who_has_another_way_to_meet_waits_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    named: dict[str, Any],
    awaited: bool,
    variables: dict[str, str],
) -> None:
    name = "torch.distributed.distributed_c10d"
    ours = ModuleType(name)
    met: list[object] = []

    def init_process_group(*given: object, **named: object) -> None:
        met.append((given, named))

    def destroy_process_group() -> None: ...

    functions = (init_process_group, destroy_process_group)
    vars(ours).update(_world=None, **{each.__name__: each for each in functions})
    monkeypatch.setitem(sys.modules, name, ours)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    ports: list[int] = []
    monkeypatch.setattr(torch_groups, "await_listener", lambda port, _: ports.append(port))
    here = {"RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "7"}
    for variable, value in {**here, **variables}.items():
        monkeypatch.setenv(variable, value)
    torch_groups.change_process_groups()
    vars(ours)["init_process_group"](*given, **named)
    assert met == [(given, named)]
    assert ports == ([7] if awaited else [])


def test_a_listener_is_awaited() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = bound.getsockname()
        torch_groups.await_listener(address[1], 0.01)  # in vain
        later = threading.Timer(0.2, bound.listen)
        later.start()
        torch_groups.await_listener(address[1], 60)
        socket.create_connection(address).close()
        later.join()


ENDS = """
import atexit, logging, weakref
import torch

of_others = [each for each in weakref.finalize._registry if each.atexit]
import torch._dynamo
import torch._inductor.async_compile as compiling
class Pool:
    def shutdown(self): print("waits for processes that compile")
compiling._pool_set.add(Pool())
{more}
weakref.finalize(torch.nn.Linear(1, 1), print, "is run")
weakref.finalize(atexit, print, "is run at the end")
print(len(of_others), "are not of this program")
"""


READS = "torch._logging.set_logs(dynamo=logging.INFO)"
# With TensorFlow, which a warm fork server may have imported for another run, a rank ends as Python
# does.
TENSORFLOW = "import sys; sys.modules.setdefault('tensorflow', None)"


@pytest.mark.parametrize("more", [READS, "", TENSORFLOW, f"{TENSORFLOW}; {READS}"])
def test_what_a_rank_takes_apart_at_its_end_is_its_own(home: Path, more: str) -> None:
    """PyTorch's operators are not, its table of times is made where it is read, and nobody waits
    for processes that compile."""
    log = api.submit(ENDS.format(more=more), wait=True).logs()
    assert "] 0 are not of this program" in log
    assert "] is run at the end" in log and "] is run\n" in log
    assert ("TorchDynamo compilation metrics" in log) == (READS in more)
    assert "waits for processes" not in log


def test_a_rank_that_mpirun_started_waits_for_no_processes_that_compile(home: Path) -> None:
    log = api.submit(ENDS.format(more="import mpi4py.MPI"), wait=True).logs()
    assert "] is run at the end" in log and "waits for processes" not in log
