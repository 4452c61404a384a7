"""A run with `--retries` whose nodes are taken goes on from its checkpoint, as one undisturbed."""

from __future__ import annotations

from pathlib import Path

import distrain_nb as d
from distrain_nb.run import Run
from tests.conftest import eventually
from tests.slurm.cluster import Cluster

EVERY, STEPS = 5, 40
TRAIN = f"""
import json, os, time
import torch, torch.distributed as dist
from distrain_nb import log_metrics

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
path = os.path.join(os.environ["AIP_CHECKPOINT_DIR"], "last.pt")
first = 0
if os.path.exists(path):
    saved = torch.load(path)
    first = saved["step"]
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
print("attempt", os.environ.get("DISTRAIN_ATTEMPT"), os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(first, {STEPS}):
    torch.manual_seed(step * 2 + rank)
    x = torch.randn(16, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
    if rank == 0:
        log_metrics(loss=loss.item(), step=step)
        if (step + 1) % {EVERY} == 0:
            state = {{"step": step + 1, "model": model.state_dict(),
                     "optimizer": optimizer.state_dict()}}
            torch.save(state, path + ".new")
            os.replace(path + ".new", path)
    time.sleep(float(os.environ.get("SLOW", "0")))
final = loss.item()
dist.destroy_process_group()
"""


def attempts(run: Run, rank: int) -> list[list[int]]:
    """The steps of a rank in each attempt, by the log."""
    found: list[list[int]] = [[]]
    for line in run.logs().splitlines():
        if line.startswith("[service] attempt "):
            found.append([])
        elif line.startswith(f"[rank {rank}] step "):
            found[-1].append(int(line.split()[-1]))
    return found


def test_a_preempted_run_ends_as_one_that_nobody_disturbed(slurm: Cluster, work: Path) -> None:
    undisturbed = d.submit(TRAIN, ranks_per_replica=2, result="final", wait=True)
    slurm.wait_idle()
    run = d.submit(
        TRAIN, on="slurm", workers=2, retries=3, result="final", env=["SLOW=0.1"], name="resumed"
    )
    assert eventually(lambda: len(attempts(run, 0)[0]) > 2 * EVERY)
    slurm.run("sbatch", "-p", "urgent", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "true")
    run.wait(200)
    marks = [line for line in run.logs().splitlines() if line.startswith("[service]")]
    assert marks == [
        "[service] attempt 2 of 4, after a job of higher priority took the nodes (preempted)"
    ]
    assert "[rank 1] attempt 1 0" in run.logs() and "[rank 1] attempt 2 1" in run.logs()
    for rank in (0, 1):
        before, after = attempts(run, rank)
        assert before == list(range(len(before)))
        assert after == list(range(after[0], STEPS))
        assert 0 <= len(before) - after[0] <= EVERY + 1
    assert run.results["final"] == undisturbed.results["final"]
    charted = run.metrics()
    assert charted["step"].tolist() == list(range(STEPS))
    assert charted["loss"].tolist() == undisturbed.metrics()["loss"].tolist()


KILLED_THEN_WRONG = """
import os, signal
import torch, torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    if os.environ.get("DISTRAIN_ATTEMPT") == "2":
        raise ValueError("mine")
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
"""


def test_a_rank_that_is_killed_is_tried_again_and_one_that_raises_is_not(
    slurm: Cluster, work: Path
) -> None:
    run = d.submit(KILLED_THEN_WRONG, on="slurm", workers=2, retries=9)
    assert eventually(lambda: run.status.state.final, 90)
    marks = [line for line in run.logs().splitlines() if line.startswith("[service]")]
    assert marks == ["[service] attempt 2 of 10, after rank 1 was killed by SIGKILL"]
    assert "rank 1 failed" in run.status.error
    assert "ValueError: mine" in run.status.error
