"""What the record of facts costs: in a step of 5 ms, for a model of 1 GB, and on disk.

`python -m benchmarks.facts [ROUNDS]` trains with two ranks, each second step with the record, and
compares the medians of rank 0's processor time. Then it makes the record of 100,000 steps of a
model with 256 tensors of 4 MB. The last line is JSON.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from statistics import median

import torch

from distrain_nb import api
from distrain_nb.worker.files.folder import EVENTS_FOLDER, FACTS_FOLDER
from distrain_nb.worker.rank.projections import projections

CELL = """\
import time, torch, torch.distributed as dist
from statistics import median
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from distrain_nb.worker.facts.record import RECORD
torch.set_num_threads(1)
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(64000, 256), torch.randn(64000, 1))
layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(10)]
model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(256, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
sampler = DistributedSampler(data)
thread, seconds, steps = RECORD.thread, {True: [], False: []}, 0
for x, y in DataLoader(data, batch_size=16, sampler=sampler):
    recorded = steps % 2 == 0
    RECORD.thread = thread if recorded else 0
    began = time.process_time()
    (model(x) - y).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    seconds[recorded].append(time.process_time() - began)
    steps += 1
RECORD.thread = thread
means = {key: median(values) for key, values in seconds.items()}
print("STEP", means[False], means[True])
dist.destroy_process_group()
"""
STEPS = 100_000


def step_seconds() -> tuple[float, float, int]:
    """Return rank 0's processor time for a step without the record and with it, and its bytes."""
    run = api.submit(CELL, ranks_per_replica=2, wait=True)
    found = re.search(r"\[rank 0\] STEP (\S+) (\S+)", run.logs())
    assert found, run.logs()
    folder = run.folder / EVENTS_FOLDER / FACTS_FOLDER
    sizes = [path.stat().st_size for path in Path(folder).glob("rank-0.*")]
    return float(found[1]), float(found[2]), sum(sizes)


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
    results = [step_seconds() for _ in range(rounds)]
    for without, recorded, _ in results:
        print(f"{1000 * without:.3f} ms, with the record {1000 * recorded:.3f} ms", flush=True)
    seconds, of_large = large_model()
    figures = {
        "step_ms": round(1000 * median(result[0] for result in results), 2),
        "times_as_long": round(median(result[1] / result[0] for result in results), 4),
        "bytes_of_a_rank": results[0][2],
        "seconds_of_1_GB": round(seconds, 3),
        "bytes_of_1_GB": of_large,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
