"""What the record of facts costs: in a step of 5 ms, for a model of 1 GB, and on disk.

`python -m benchmarks.facts [ROUNDS]` trains with two ranks by turns with the record and without
(`DISTRAIN_FACTS=0`), and compares the processor's time of rank 0 for a step, the median of the
rounds. Then it makes the record of 100,000 steps of a model with 256 tensors of 4 MB. The last line
is JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from statistics import median

import torch

from distrain_nb import api
from distrain_nb.worker.files.folder import EVENTS_FOLDER, FACTS_FOLDER, FACTS_VARIABLE
from distrain_nb.worker.rank.projections import projections

CELL = """\
import time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
torch.set_num_threads(1)
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(16384, 256), torch.randn(16384, 1))
layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(8)]
model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(256, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = DistributedSampler(data)
steps = 0
for x, y in DataLoader(data, batch_size=16, sampler=sampler):
    if steps == 12:
        began = time.process_time()
    (model(x) - y).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    steps += 1
print("STEP", (time.process_time() - began) / (steps - 12))
dist.destroy_process_group()
"""
STEPS = 100_000


def step_seconds(*, recorded: bool) -> tuple[float, int]:
    """Return rank 0's processor time for a step, and the bytes of its facts."""
    os.environ[FACTS_VARIABLE] = str(int(recorded))
    run = api.submit(CELL, ranks_per_replica=2, wait=True)
    found = re.search(r"\[rank 0\] STEP (.*)", run.logs())
    assert found, run.logs()
    folder = run.folder / EVENTS_FOLDER / FACTS_FOLDER
    sizes = [path.stat().st_size for path in Path(folder).glob("rank-0.*")]
    return float(found[1]), sum(sizes)


def large_model() -> tuple[float, int]:
    """Return seconds and bytes of all facts about the weights and gradients of a 1 GB model."""
    tensors = [torch.randn(1024, 1024) for _ in range(256)]
    began, size = time.process_time(), 0
    for _ in range(STEPS.bit_length() + 2):
        size += len(projections(tensors)) + len(projections(tensors))
    return time.process_time() - began, size


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    without, with_record, size = [], [], 0
    for _ in range(rounds):
        without.append(step_seconds(recorded=False)[0])
        seconds, size = step_seconds(recorded=True)
        with_record.append(seconds)
        print(f"{1000 * without[-1]:.3f} ms, with the record {1000 * seconds:.3f} ms", flush=True)
    seconds, of_large = large_model()
    figures = {
        "step_ms": round(1000 * median(without), 2),
        "times_as_long": round(median(with_record) / median(without), 4),
        "bytes_of_a_rank": size,
        "seconds_of_1_GB": round(seconds, 3),
        "bytes_of_1_GB": of_large,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
