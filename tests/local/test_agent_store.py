"""Programs that open a client of the store at MASTER_ADDR:MASTER_PORT, as under torchrun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import distrain_nb as d

PROGRAM = """
import os
from datetime import timedelta
import torch
import torch.distributed as dist
from torch.distributed import TCPStore

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = TCPStore(
    os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
    wait_for_workers=False, timeout=timedelta(seconds=60),
)
assert isinstance(store, TCPStore) and type(store) is dist.TCPStore
store.set(f"k{rank}", f"of {rank}")
heard = [store.get(f"k{other}").decode() for other in range(world)]
dist.init_process_group("gloo")
total = torch.tensor(float(rank + 1))
dist.all_reduce(total)
dist.destroy_process_group()  # a second group would meet the first one's keys: torchrun hangs, too
os.write(1, f"heard {heard} {total.item()}\\n".encode())  # at once: torchrun's ranks share a pipe
"""
OWN_SERVER = """
import os
import torch.distributed as dist
rank = int(os.environ["RANK"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 2, rank == 0)
store.set(f"k{rank}", "x")
print("both", store.get("k0"), store.get("k1"))
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
dist.barrier()
"""


@pytest.fixture(autouse=True)
def own_home(home: Path) -> None:
    """No test sees the runs of another."""


def test_what_torchrun_runs_a_cell_runs(tmp_path: Path) -> None:
    run = d.submit(PROGRAM, ranks_per_replica=2)
    run.wait()
    (tmp_path / "t.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "t.py"]
    rival = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    answer = "heard ['of 0', 'of 1'] 3.0"
    assert rival.stdout.count(answer) == 2, rival.stderr
    assert str(run.logs()).count(answer) == 2


def test_a_program_that_serves_it_itself_still_does() -> None:
    run = d.submit(OWN_SERVER, ranks_per_replica=2)
    run.wait()
    assert str(run.logs()).count("both b'x' b'x'") == 2
