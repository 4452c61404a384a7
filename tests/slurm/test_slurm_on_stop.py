"""Programs that save ahead of the end of a job on a real Slurm cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

import distrain_nb as d
from distrain_nb.run import Run
from tests.conftest import eventually
from tests.slurm.cluster import Cluster
from tests.slurm.test_jobs import begun, ended, job_of

pytestmark = pytest.mark.slow

# Two ranks on two nodes that wait for each other at each step.
SAVES = """
import os, time, torch
import torch.distributed as dist
from distrain_nb import on_stop
dist.init_process_group("gloo")
step = 0

@on_stop
def save():
    print("saved at", step, flush=True)

while True:
    dist.all_reduce(torch.ones(1))
    step += 1
    time.sleep(0.05 * dist.get_rank())
    if step == 1:
        print("begun", flush=True)
"""
AGREE = """
import time, torch
import torch.distributed as dist
from distrain_nb import stopping
dist.init_process_group("gloo")
step = 0
while not stopping():
    dist.all_reduce(torch.ones(1))
    step += 1
    if step == 1:
        print("begun", flush=True)
dist.barrier()
print("saved at", step, flush=True)
"""


def saved(run: Run) -> list[int]:
    return [int(line.split()[-1]) for line in str(run.logs()).splitlines() if "saved at" in line]


def test_a_job_saves_ahead_of_its_end(slurm: Cluster, work: Path) -> None:
    """Its time limit, which the cluster knows better than we do; `scancel`; and ranks of two nodes
    that agree on a step. All at once."""
    small = {"on": "slurm", "cpus": 1, "workers": 2}
    limited, agreed = (
        d.submit(code, **small, name=name, signal_before=45)
        for name, code in (("limited", SAVES), ("agreed", AGREE))
    )
    behind = d.submit(SAVES, **small, name="behind")
    runs = (limited, agreed, behind)
    assert all(eventually(lambda run=run: begun(run, 2), 120) for run in runs)
    for run in (limited, agreed):
        slurm.run("scontrol", "update", f"JobId={job_of(slurm, run)}", "TimeLimit=1")
    slurm.run("scancel", job_of(slurm, behind))
    assert all(eventually(lambda run=run: ended(run), 120) for run in runs)
    assert [len(saved(run)) for run in runs] == [2, 2, 2]
    assert len(set(saved(agreed))) == 1
    assert [str(run.state) for run in runs] == ["failed", "failed", "cancelled"]
    for run in (limited, agreed):
        assert run.status.error.startswith("it was stopped near its time limit")
    assert agreed.status.note.startswith("stopped after step ")
    for run in (limited, behind):
        assert run.status.note.startswith("stopped after saving, in ")


def test_a_preempted_job_saves(slurm: Cluster, work: Path) -> None:
    run = d.submit(SAVES, on="slurm", cpus=1, workers=2)
    assert eventually(lambda: begun(run, 2), 120)
    d.submit("1", on="slurm", partition="urgent", workers=4, exclusive=True)
    assert eventually(lambda: ended(run), 120)
    assert len(saved(run)) == 2
    assert run.status.note.startswith("stopped after saving, in ")
    assert "preempted" in run.status.error
