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

# Its first attempt goes on until it is stopped.
CONTINUES = """
import os, time
from distrain_nb import on_stop
path = os.environ["AIP_CHECKPOINT_DIR"] + "/step"
step = int(open(path).read()) if os.path.exists(path) else 0
print("begun", step, flush=True)

@on_stop
def save():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(str(step))

while os.environ["DISTRAIN_ATTEMPT"] == "1":
    step += 1
    time.sleep(0.01)
"""


def saved(run: Run) -> list[int]:
    return [int(line.split()[-1]) for line in str(run.logs()).splitlines() if "saved at" in line]


def test_a_job_saves_ahead_of_its_end(slurm: Cluster, work: Path) -> None:
    """Its time limit, which the cluster knows better than we do; `scancel`; and ranks of two nodes
    that agree on a step; one that goes on behind its time limit. All at once."""
    small = {"on": "slurm", "cpus": 1, "workers": 2}
    limited, agreed = (
        d.submit(code, **small, name=name, signal_before=45)
        for name, code in (("limited", SAVES), ("agreed", AGREE))
    )
    behind = d.submit(SAVES, **small, name="behind")
    continued = d.submit(
        CONTINUES, on="slurm", cpus=1, workers=1, name="continued", signal_before=45, retries=2,
        result="step",
    )  # fmt: skip
    runs = (limited, agreed, behind)
    assert all(eventually(lambda run=run: begun(run, 2), 120) for run in runs)
    assert eventually(lambda: begun(continued), 120)
    for run in (limited, agreed, continued):
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
    assert eventually(lambda: ended(continued), 120) and str(continued.state) == "succeeded"
    lines = str(continued.logs()).splitlines()
    assert "[service] attempt 2 of 3, after it had saved ahead of its time limit" in lines
    step = continued.results["step"]
    assert step > 0 and lines[-1] == f"[rank 0] begun {step}"


def test_a_preempted_job_saves(slurm: Cluster, work: Path) -> None:
    run = d.submit(SAVES, on="slurm", cpus=1, workers=2)
    assert eventually(lambda: begun(run, 2), 120)
    d.submit("1", on="slurm", partition="urgent", workers=4, exclusive=True)
    assert eventually(lambda: ended(run), 120)
    assert len(saved(run)) == 2
    assert run.status.note.startswith("stopped after saving, in ")
    assert "preempted" in run.status.error
