"""What gloo does for a group with reducers goes on while gloo's threads want the interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Two ranks in one process. A tensor that gloo alone still has is freed by its thread, under gloo's
# own lock, as soon as it gets the interpreter's: which this thread keeps until it asks for more.
PROGRAM = """
import ctypes, faulthandler, os, sys, threading
from datetime import timedelta
import torch, torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from distrain_nb.worker.reduction.group import group_class

store, gloos, groups = dist.HashStore(), {}, {}
reduced_group = group_class(c10d)

def make(rank):
    gloos[rank] = c10d.ProcessGroupGloo(store, rank, 2, timedelta(minutes=10))
    groups[rank] = reduced_group(store, rank, 2)
    kind = c10d.ProcessGroup.BackendType.GLOO
    groups[rank]._register_backend(torch.device("cpu"), kind, gloos[rank])

threads = [threading.Thread(target=make, args=(rank,)) for rank in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

def leave_a_tensor_to(gloo):
    gloo.broadcast([torch.ones(4)], c10d.BroadcastOptions())

def vector(size, rank):
    return torch.arange(float(size)) + 10 * rank

def ask(way, group):
    rank = group.rank()
    if way == "broadcast":
        out = [vector(2, rank)]
        return out, group.broadcast(out, c10d.BroadcastOptions())
    if way == "send":
        out = [vector(2, rank)]
        return out, group.recv(out, 1, 3) if rank == 0 else group.send(out, 0, 3)
    if way == "allgather":
        out = [torch.zeros(2), torch.zeros(2)]
        return out, group.allgather([out], [vector(2, rank)])
    if way == "reduce_scatter":
        out = [torch.zeros(2)]
        return out, group.reduce_scatter(out, [[vector(2, rank), vector(2, 5)]])
    if way == "alltoall_base":
        out = [torch.zeros(2)]
        return out, group.alltoall_base(out[0], vector(2, rank), [], [])
    if way == "allreduce_coalesced":
        out = [vector(2, rank), vector(1, rank)]
        return out, group.allreduce_coalesced(out)
    if way == "allgather_into_tensor_coalesced":
        out = [torch.zeros(4), torch.zeros(2)]
        return out, group.allgather_into_tensor_coalesced(out, [vector(2, rank), vector(1, rank)])
    if way == "reduce_scatter_tensor_coalesced":
        out = [torch.zeros(2), torch.zeros(1)]
        return out, group.reduce_scatter_tensor_coalesced(out, [vector(4, rank), vector(2, rank)])
    return [], group.barrier()

faulthandler.dump_traceback_later(180, exit=True)
sys.setswitchinterval(1000)
for way in sys.argv[1:]:
    print(way, end=" ", flush=True)
    for turn in range(3):
        for rank in (0, 1):
            leave_a_tensor_to(gloos[rank])
        ctypes.PyDLL(None).usleep(100_000)
        asked = [ask(way, groups[rank]) for rank in (0, 1)]
        for _, work in asked:
            work.wait()
    print([[each.tolist() for each in out] for out, _ in asked], flush=True)
os._exit(0)
"""

SUMS = [[10.0, 12.0], [10.0]]
GATHERED = [[0.0, 1.0, 10.0, 11.0], [0.0, 10.0]]
# What both ranks have then.
WAYS = {
    "broadcast": [[[0.0, 1.0]]] * 2,
    "send": [[[10.0, 11.0]]] * 2,
    "allgather": [[[0.0, 1.0], [10.0, 11.0]]] * 2,
    "reduce_scatter": [[[10.0, 12.0]], [[100.0, 102.0]]],
    "alltoall_base": [[[0.0, 10.0]], [[1.0, 11.0]]],
    "allreduce_coalesced": [SUMS] * 2,
    "allgather_into_tensor_coalesced": [GATHERED] * 2,
    "reduce_scatter_tensor_coalesced": [SUMS, [[14.0, 16.0], [12.0]]],
    "barrier": [[], []],
}


@pytest.mark.slow
def test_gloo_s_work_is_not_done_under_the_interpreter_s_lock() -> None:
    command = [sys.executable, "-c", PROGRAM, *WAYS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines() == [f"{way} {both}" for way, both in WAYS.items()], ended
    assert ended.returncode == 0


# A rank's part is at the reducer when its run ends. The next run has the same names.
RUNS = """
import multiprocessing, os, sys, tempfile
import torch, torch.distributed as dist
from distrain_nb.worker.reduction.process_groups import install
from distrain_nb.worker.reduction.reducer import Reducer

context = multiprocessing.get_context("fork")
reducer = Reducer("127.0.0.1:0")
port = reducer._listener.getsockname()[1]
serving = context.Process(target=reducer.run, daemon=True)
serving.start()
os.environ.update(DISTRAIN_REDUCERS=f"127.0.0.1:{port}", GLOO_SOCKET_IFNAME="lo")

def rank(number, store, whole):
    install()
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=2)
    if whole:
        tensor = torch.full((4,), number + 1.0)
        dist.all_reduce(tensor)
        print(tensor.tolist(), flush=True)
    elif number == 0:
        dist.all_reduce(torch.full((4,), 100.0), async_op=True)
        while dist.group.WORLD._exchange._links[0].missing() != [1]:
            pass
    os._exit(0)

with tempfile.TemporaryDirectory() as folder:
    for whole in (False, True):
        ranks = [
            context.Process(target=rank, args=(n, f"{folder}/{whole}", whole)) for n in (0, 1)
        ]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join()
serving.kill()
"""


@pytest.mark.slow
def test_what_a_run_has_left_at_a_reducer_is_no_part_of_the_next() -> None:
    command = [sys.executable, "-c", RUNS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    # Two processes print, into each other's lines now and then.
    assert ended.stdout.count(str([3.0] * 4)) == 2, ended
