"""What it costs to see where the time goes, and how near that is to the truth: beside TraceML.

    python -m benchmarks.insight [ROUNDS]
    python -m benchmarks.insight link

The cost: the same loop of PyTorch plain, measured by us, and under TraceML (which pip installs into
a temporary folder), each in a process of its own. A step works until it has used 2, 5 or 50 ms of
the processor. What counts is the processor's time of the whole training process for the median
step, the lowest of the rounds, as other work disturbs it less than the clock. Ours is less than two
processes differ by, so every other step of one process is measured, and the medians of both kinds
are compared. What either does every few seconds is not in the median step, nor is the helper
process that TraceML starts.

The shares: two ranks whose loader, loss and logging sleep, one longer than the other. The program
holds a stopwatch on each itself. The largest difference of a share is `share_error_points`, that of
the slow rank's delay `late_error_ms`.

The link: two ranks on nodes of their own, with 100 Mbit/s between them (`links.py`, which needs
root), whose gradient has 2 MB. They exchange it by DDP, and by an `all_reduce` of their own. The
truth is a stopwatch around `all_reduce`, and around DDP's backward pass less the median of such
passes without an exchange. The largest difference of a share is `exchange_error_points`; the time
that the link's rate gives is printed beside. `link` runs this part alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.links import Node, Shape, switched

STEPS = {2: 500, 5: 300, 50: 60}  # by milliseconds
TRACEML = ("traceml-ai==0.5.0", "msgspec", "nvidia-ml-py")
ROOT = Path(__file__).parents[1]
LINK, GRADIENT_BYTES = Shape(100, 0), 2_000_000
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1448  # of a segment of TCP on Ethernet, as tc counts it

LOOP = """
import contextlib, json, os, statistics, time
kind = os.environ["KIND"]
traced = contextlib.nullcontext
if kind == "ours":
    from distrain_nb.worker.metrics.step_times import CLOCK
    from distrain_nb.worker.rank import step_hooks
    step_hooks.install()
    threads = [CLOCK.thread, 0]
import torch
if kind == "traceml":
    import traceml_ai
    traceml_ai.init(mode="auto")
    traced = traceml_ai.trace_step
torch.set_num_threads(1)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def step(milliseconds):
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        pass

costs = {}
for milliseconds, steps in json.loads(os.environ["STEPS"]).items():
    loader = torch.utils.data.DataLoader([torch.ones(4)] * (steps + 20))
    times = []
    for batch in loader:
        with traced(net):
            step(int(milliseconds))
        times.append(time.process_time())
        if kind == "ours":
            CLOCK.thread = threads[len(times) % 2]
    steps = [after - before for before, after in zip(times[20:], times[21:])]
    cost = statistics.median(steps)
    if kind == "ours":
        cost = statistics.median(steps[1::2]) - statistics.median(steps[::2])
    costs[milliseconds] = cost * 1000
with open(os.environ["RESULT"], "w") as file:
    json.dump(costs, file)
"""

TRUTH = """
import collections, os, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 300
    def __getitem__(self, index):
        time.sleep(0.03)
        return torch.ones(4)

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
truth, batches = collections.Counter(), iter(DataLoader(Slow()))
for number in range(300):
    if number == 1:
        truth.clear()
    began = time.perf_counter()
    batch = next(batches)
    has_data = time.perf_counter()
    loss = net(batch).sum()
    time.sleep(0.02 + 0.03 * rank)
    computed = time.perf_counter()
    loss.backward()
    exchanged = time.perf_counter()
    optimizer.step()
    optimized = time.perf_counter()
    time.sleep(0.01)
    truth["data"] += has_data - began
    truth["compute"] += computed - has_data + optimized - exchanged
    truth["exchange"] += exchanged - computed
    truth["rest"] += time.perf_counter() - optimized
truth = {kind: total / 299 for kind, total in truth.items()}
every_truth = [None, None]
dist.all_gather_object(every_truth, truth)
"""


EXCHANGE = """
import collections, json, os, statistics, sys, time
from distrain_nb.worker.rank import step_hooks
step_hooks.install()
import torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from distrain_nb.worker.metrics.step_times import CLOCK

class Slow(Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(int(os.environ["NUMBERS"]))

torch.set_num_threads(1)
dist.init_process_group("gloo")
by_ddp = os.environ["BY"] == "ddp"
net = torch.nn.Linear(int(os.environ["NUMBERS"]), 1, bias=False)
wrapped = torch.nn.parallel.DistributedDataParallel(net) if by_ddp else net
optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)

def alone():
    began = time.perf_counter()
    wrapped(torch.ones(1, net.in_features)).sum().backward()
    return time.perf_counter() - began

own = 0.0
if by_ddp:
    with wrapped.no_sync():
        own = statistics.median([alone() for _ in range(20)])
    optimizer.zero_grad()
truth, batches = collections.Counter(), iter(DataLoader(Slow()))
dist.barrier()
for number in range(60):
    if number == 1:
        truth.clear()
    began = time.perf_counter()
    batch = next(batches)
    has_data = time.perf_counter()
    loss = wrapped(batch).sum()
    time.sleep(0.1)
    computed = time.perf_counter()
    loss.backward()
    passed = time.perf_counter()
    exchange = max(0.0, passed - computed - own)
    if not by_ddp:
        dist.all_reduce(net.weight.grad)
        exchange = time.perf_counter() - passed
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    optimized = time.perf_counter()
    truth["data"] += has_data - began
    truth["exchange"] += exchange
    truth["compute"] += optimized - has_data - exchange
    time.sleep(0.02)
    truth["rest"] += time.perf_counter() - optimized
CLOCK.end()
with open(os.environ["RESULT"], "w") as file:
    json.dump({kind: total / 59 for kind, total in truth.items()}, file)
"""


def cost(kind: str, folder: Path, packages: Path) -> dict[str, float]:
    """Return the milliseconds of the processor that a step takes, by its length; of ours, those
    that measuring adds."""
    script, result = folder / "loop.py", folder / "result.json"
    script.write_text(LOOP)
    result.unlink(missing_ok=True)
    command = [sys.executable, str(script)]
    paths = [str(ROOT)]
    if kind == "traceml":
        command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", str(script)]
        paths.append(str(packages))
    variables = {
        "KIND": kind,
        "STEPS": json.dumps(STEPS),
        "RESULT": str(result),
        "RANK": "0",
        "AIP_TENSORBOARD_LOG_DIR": str(folder / "events"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    if kind == "traceml":
        del variables["RANK"]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if not result.exists():
        raise RuntimeError(f"{kind}: {done.stdout[-500:]}{done.stderr[-500:]}")
    costs: dict[str, float] = json.loads(result.read_text())
    return costs


def costs(rounds: int, failed: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return the lowest cost of each kind and length."""
    lowest: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder, "packages")
        install = ["pip", "install", "--quiet", "--no-deps", "--target", str(packages), *TRACEML]
        installed = subprocess.run([sys.executable, "-m", *install], check=False).returncode == 0
        if not installed:
            failed["traceml"] = "pip can't install it"
        for _ in range(rounds):
            for kind in ("plain", "ours", *(["traceml"] if installed else [])):
                try:
                    measured = cost(kind, Path(folder), packages)
                except RuntimeError as error:
                    failed[kind] = str(error)
                    continue
                before = lowest.setdefault(kind, measured)
                lowest[kind] = {ms: min(before[ms], measured[ms]) for ms in measured}
                print(kind, measured, file=sys.stderr)
    return lowest


def clock_us() -> float:
    """Return the microseconds that the clock of steps itself takes a step: the lowest of many."""
    from distrain_nb.worker.metrics.step_times import CLOCK

    blocks, steps = 50, 1000
    lowest, optimizer = float("inf"), object()
    with tempfile.TemporaryDirectory() as folder:
        CLOCK.begin(Path(folder))
        for _ in range(blocks):
            began = time.thread_time()
            for _ in range(steps):
                CLOCK.leave(CLOCK.enter("data"))
                CLOCK.optimized(optimizer)
            lowest = min(lowest, (time.thread_time() - began) / steps)
        CLOCK.end()
    return lowest * 1e6


def shares() -> tuple[float, float]:
    """Return the largest error of a share, in points, and that of the delay, in milliseconds."""
    os.environ["DISTRAIN_HOME"] = tempfile.mkdtemp()
    from distrain_nb import api
    from distrain_nb.run.metrics.step_times import step_times

    run = api.submit(TRUTH, ranks_per_replica=2, result="every_truth")
    run.wait(300)
    truths: list[dict[str, float]] = run.results["every_truth"]
    times, error = step_times(run.folder), share_error(run.folder, truths)
    for finding in run.findings:
        print(finding, file=sys.stderr)
    true_delay = truths[1]["compute"] - truths[0]["compute"]
    waits = [times.ranks[rank].median("exchange") for rank in (0, 1)]
    return error, abs(waits[0] - waits[1] - true_delay) * 1000


def share_error(folder: Path, truths: Sequence[dict[str, float]]) -> float:
    """Return the largest error of a share of a rank's step, in points; `truths` are seconds a step
    by kind, of each rank."""
    from distrain_nb.run.metrics.step_times import step_times

    times, errors = step_times(folder), []
    for rank, truth in enumerate(truths):
        means, step = times.ranks[rank].means, times.ranks[rank].step_s
        total = sum(truth.values())
        print(f"rank {rank}", "truth", truth, "measured", means, file=sys.stderr)
        errors += [
            abs(seconds / total - means[kind] / step) * 100 for kind, seconds in truth.items()
        ]
    return max(errors)


def link_error() -> float:
    """Return the largest error of a share where the exchange goes over a shaped link, in points."""
    by_rate = GRADIENT_BYTES * FRAME_BYTES / PAYLOAD_BYTES * 8 / (LINK.mbit * 1e6)
    print(f"{LINK}: {1000 * by_rate:.0f} ms an exchange by its rate", file=sys.stderr)
    errors = []
    for by in ("ddp", "all_reduce"):
        with tempfile.TemporaryDirectory() as folder, switched(2, LINK) as nodes:
            errors.append(share_error(Path(folder), exchanged(by, Path(folder), nodes)))
    return max(errors)


def exchanged(by: str, folder: Path, nodes: Sequence[Node]) -> list[dict[str, float]]:
    """Run a rank on each node; return the seconds a step of each kind by its own stopwatch."""
    script = folder / "exchange.py"
    script.write_text(EXCHANGE)
    results = [folder / f"{rank}.json" for rank in range(len(nodes))]
    ranks = []
    for rank, node in enumerate(nodes):
        variables = {
            "BY": by,
            "NUMBERS": str(GRADIENT_BYTES // 4),
            "RESULT": str(results[rank]),
            "RANK": str(rank),
            "WORLD_SIZE": str(len(nodes)),
            "MASTER_ADDR": nodes[0].address,
            "MASTER_PORT": "29500",
            "GLOO_SOCKET_IFNAME": node.device,
            "AIP_TENSORBOARD_LOG_DIR": str(folder / "tensorboard"),
            "PYTHONPATH": str(ROOT),
        }
        command = node.command(sys.executable, str(script))
        ranks.append(subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}))
    if any(rank.wait(300) for rank in ranks):
        raise RuntimeError(f"{by}: a rank ended with an error")
    return [json.loads(result.read_text()) for result in results]


def main() -> None:
    if sys.argv[1:] == ["link"]:
        print(json.dumps({"exchange_error_points": round(link_error(), 2)}))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    failed: dict[str, str] = {}
    result: dict[str, Any] = {"clock_us": round(clock_us(), 2)}
    largest, late_error = shares()
    try:
        result["exchange_error_points"] = round(link_error(), 2)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        failed["link"] = str(error)
    lowest = costs(rounds, failed)
    plain, ours = lowest["plain"], lowest["ours"]
    for ms in plain:
        print(f"{ms} ms: {1000 * ours[ms]:+.1f} µs a step", file=sys.stderr)
        result[f"overhead_{ms}ms"] = round(1 + ours[ms] / plain[ms], 4)
    result["overhead_over_traceml"] = None
    if "traceml" in lowest:
        theirs = {ms: lowest["traceml"][ms] - plain[ms] for ms in plain}
        for ms in theirs:
            print(f"{ms} ms, TraceML: {1000 * theirs[ms]:+.1f} µs a step", file=sys.stderr)
        result["overhead_over_traceml"] = round(ours["5"] / theirs["5"], 4)
    result.update(
        share_error_points=round(largest, 2), late_error_ms=round(late_error, 2), failed=failed
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
