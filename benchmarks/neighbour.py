"""Two ranks beside a stranger who takes every CPU: ours, ours while a page looks, torchrun.

`python benchmarks/neighbour.py [ROUNDS]`; the last line is one JSON object: our seconds over
torchrun's, medians of the rounds. The ranks train a small convolutional network with gloo for some
seconds; what is timed is the training itself, by rank 0, without imports and start. The stranger is
one busy process for each CPU, with the priority that any program has.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe

TRAIN = """
import time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(8, 3, 64, 64), torch.zeros(8, dtype=torch.long)
begun = time.monotonic()
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
took = time.monotonic() - begun
if dist.get_rank() == 0:
    print("TOOK", took)
dist.destroy_process_group()
"""


def ours(looked_at: bool) -> float:
    """Seconds of the training as a run of ours; `looked_at` as if a page showed it."""
    import distrain_nb
    from distrain_nb.worker.supervisor.heartbeat import note_watched

    run = distrain_nb.submit(TRAIN, ranks_per_replica=2)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            note_watched(run.folder)

    looking = threading.Thread(target=look if looked_at else ended.wait)
    looking.start()
    try:
        run.wait()
    finally:
        ended.set()
        looking.join()
    return _took(run.logs())


def torchrun() -> float:
    """Seconds of the training under torchrun."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(TRAIN)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        ran = subprocess.run(
            [*command, "--nproc-per-node=2", "train.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return _took(ran.stdout)


def _took(printed: str) -> float:
    return next(float(line.split()[-1]) for line in printed.splitlines() if "TOOK" in line)


@contextmanager
def stranger() -> Iterator[None]:
    """One process for each CPU that does nothing but count, in a session of its own."""
    busy = "while True: pass"
    started = [
        subprocess.Popen([sys.executable, "-c", busy], start_new_session=True)
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def main(rounds: int) -> None:
    os.environ["DISTRAIN_HOME"] = tempfile.mkdtemp()
    ways = {
        "torchrun": torchrun,
        "ours": lambda: ours(looked_at=False),
        "looked_at": lambda: ours(looked_at=True),
    }
    print(describe("torch", "distrain-nb"))
    alone = {name: way() for name, way in ways.items()}
    beside: dict[str, list[float]] = {name: [] for name in ways}
    with stranger():
        time.sleep(1)
        for _ in range(rounds):
            for name, way in ways.items():
                beside[name].append(way())
    found = {name: statistics.median(times) for name, times in beside.items()}
    print(f"\n{'':12}{'alone':>10}{'beside':>10}")
    for name in ways:
        print(f"{name:12}{alone[name]:>8.2f} s{found[name]:>8.2f} s")
    ratios = {f"{name}_over_torchrun": round(found[name] / found["torchrun"], 3)
              for name in ("ours", "looked_at")}  # fmt: skip
    print(json.dumps(ratios))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
