"""Whether a rank that runs alone needs the memory that it needs beside a real one.

`python -m benchmarks.dry_memory` trains ten models of three kinds, with DDP and with FSDP2, for two
steps each: in two real ranks with gloo on the CPU, where PyTorch's own `MemTracker` counts, and as
rank 1 of 2 alone, as `--as-rank` counts. It compares the peaks of rank 1. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

STEPS = 2
Peaks = dict[str, float]


def models() -> Iterator[tuple[str, Callable[[], Any], tuple[int, ...]]]:
    """Yield each model's name, a function that makes it, and the shape of its input."""
    from torch import nn

    def perceptron(width: int) -> Any:
        layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(4)]
        return nn.Sequential(*layers)

    def convolutions(channels: int) -> Any:
        first = nn.Conv2d(3, channels, 3, padding=1)
        others = [nn.Conv2d(channels, channels, 3, padding=1) for _ in range(3)]
        return nn.Sequential(first, nn.ReLU(), *others, nn.Flatten())

    def transformer(width: int) -> Any:
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    for width in (128, 256, 512):
        yield f"perceptron {width}", lambda width=width: perceptron(width), (32, width)
    for channels in (8, 16, 32):
        yield f"convolutions {channels}", lambda c=channels: convolutions(c), (4, 3, 32, 32)
    for width in (32, 64, 128, 192):
        yield f"transformer {width}", lambda width=width: transformer(width), (4, 32, width)


def train(make: Callable[[], Any], shape: tuple[int, ...], *, shards: bool, ends: Any) -> None:
    """Make two steps; `ends` is called with the optimizer behind each."""
    import torch
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = make()
    if shards:
        for part in getattr(model, "layers", None) or model.children():
            if any(True for _ in part.parameters()):
                fully_shard(part)
        fully_shard(model)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(STEPS):
        model(torch.randn(*shape)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        ends(optimizer)


@contextmanager
def counted_by_pytorch(peaks: Peaks, name: str) -> Iterator[Any]:
    """Count by PyTorch's tracker."""
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    with MemTracker() as tracker:
        yield lambda _: tracker.reset_mod_stats()  # or a second step is refused
    peaks[name] = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


@contextmanager
def counted_alone(group: Any, peaks: Peaks, name: str) -> Iterator[Any]:
    """Count as a rank that runs alone does."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from distrain_nb.worker.rank.dry_memory import TensorMemory
    from distrain_nb.worker.rank.dry_rank import operations

    optimizers: list[Any] = []
    memory = TensorMemory(lambda: optimizers)
    memory.watch()

    def note(operation: Any, arguments: Any, result: Any) -> Any:
        memory.note(result)
        return group.answer(operation, arguments, result)

    def ends(optimizer: Any) -> None:
        optimizers[:] = [optimizer]
        memory.step_ends()

    mode: TorchDispatchMode = operations(note)
    with mode:
        yield ends
    peaks[name] = sum(memory.peak().values())


def rank(alone: str) -> None:
    """Train all models as the rank that the environment names, and print the peaks."""
    import torch.distributed as dist

    from distrain_nb.worker.rank.dry_group import AnsweringGroup

    group = AnsweringGroup(Path(alone), 1, 2)
    if alone:
        group.watch()
    dist.init_process_group("gloo")
    peaks: Peaks = {}
    for name, make, shape in models():
        for strategy in ("DDP", "FSDP2"):
            of = f"{name}, {strategy}"
            counted = counted_alone(group, peaks, of) if alone else counted_by_pytorch(peaks, of)
            with counted as ends:
                train(make, shape, shards=strategy == "FSDP2", ends=ends)
    print(json.dumps(peaks))


def start(number: int, port: int, alone: str = "") -> subprocess.Popen[str]:
    """Start a rank of two."""
    named = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": 2, "MASTER_PORT": port}
    environment = {**os.environ, **{n: str(v) for n, v in named.items()}, "OMP_NUM_THREADS": "1"}
    environment["MASTER_ADDR"] = "127.0.0.1"
    command = [sys.executable, "-m", "benchmarks.dry_memory", "--rank", alone]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def main() -> None:
    """Compare the peaks."""
    with closing(socket()) as listening, TemporaryDirectory() as folder:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        listening.close()
        pair = [start(0, port), start(1, port)]
        real = [json.loads(process.communicate()[0].splitlines()[-1]) for process in pair][1]
        alone = json.loads(start(1, port, folder).communicate()[0].splitlines()[-1])
    off = {name: abs(alone[name] / real[name] - 1) for name in real}
    for name, peak in real.items():
        print(f"| {name} | {peak / 1e6:.2f} MB | {alone[name] / 1e6:.2f} MB | {off[name]:.1%} |")
    within = sum(share <= 0.1 for share in off.values())
    print(json.dumps({"within_10_percent": within, "of": len(off), "most": max(off.values())}))


if __name__ == "__main__":
    rank(sys.argv[2]) if sys.argv[1:2] == ["--rank"] else main()
