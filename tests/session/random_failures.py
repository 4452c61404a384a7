"""Failures by chance in a session of four ranks: after each, it is usable, and names are as before.

`python -m tests.session.random_failures SEED COUNT` prints what it saw, one line for each kind.
"""

from __future__ import annotations

import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import psutil

from tests.session.lab import Lab

RANKS = 4
USABLE_WITHIN_S = 2.0
BEGIN = """\
import os, signal, sys, time
import torch, torch.distributed as dist
from torch.utils.data import DataLoader
rank = int(os.environ["RANK"])
ledger = []
class Broken:
    def __len__(self):
        return 4
    def __getitem__(self, n):
        if n == 2:
            raise ValueError("loader")
        return n
class Slow(Broken):
    def __getitem__(self, n):
        time.sleep(60)
def limit_memory():
    import resource
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (1 << 28)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
def hook(*_):
    raise ValueError("hook")
"""
# What one rank does, and what the others do meanwhile.
RAISES = {
    "raise before a collective": ("raise ValueError('before')", "dist.all_reduce(x)"),
    "raise after a collective": (
        "dist.all_reduce(x); raise ValueError('after')",
        "dist.all_reduce(x); dist.barrier()",
    ),
    "raise in a collective": ("dist.all_reduce(x, group=1)", "dist.all_reduce(x)"),
    "raise in a hook": (
        "y = torch.ones(1, requires_grad=True); y.register_hook(hook); (y * 2).backward()",
        "dist.all_reduce(x)",
    ),
    "raise in a loader's worker": (
        "list(DataLoader(Broken(), num_workers=1))",
        "dist.all_reduce(x)",
    ),
    "exit": ("sys.exit(3)", "dist.all_reduce(x)"),
    "all raise": ("raise ValueError('all')", "raise ValueError('all')"),
    "a collective too few": ("raise ValueError('few')", "dist.all_reduce(x); time.sleep(60)"),
}
STOPPED = {
    "stop in a collective": ("time.sleep(60)", "dist.all_reduce(x)"),
    "stop in time.sleep": ("time.sleep(60)", "time.sleep(60)"),
    "stop in a loader": ("list(DataLoader(Slow(), num_workers=1))", "dist.all_reduce(x)"),
    "stop in a loop": ("while True: pass", "while True: pass"),
    "stop in a receive": ("dist.recv(x)", "dist.recv(x)"),
    "SIGSTOP": ("os.kill(os.getpid(), signal.SIGSTOP)", "dist.all_reduce(x)"),
}
DEATHS = {
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", "dist.all_reduce(x)"),
    "os._exit": ("os._exit(7)", "dist.all_reduce(x)"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "dist.all_reduce(x)"),
    "out of memory": (
        "limit_memory(); b = [bytearray(1 << 26) for _ in range(99)]",
        "dist.all_reduce(x)",
    ),
}
KINDS = {**RAISES, **STOPPED, **DEATHS}
PROBE = """\
import resource
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if not dist.is_initialized():
    dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
print(int(x), len(ledger), sum(ledger))
"""
# A compound statement has to stand on lines of its own.
CELL = """\
ledger.append({number})
x = torch.ones(1)
if rank == {chosen}:
    {act}
else:
    {others}
"""


class Failures:
    """One session, and what has been seen in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lab = Lab(RANKS, name=f"failures-{seed}")
        self.lab.there(BEGIN)
        self.lab.there(PROBE)
        self.ledger = [list[int]() for _ in range(RANKS)]
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.troubles: list[str] = []
        self.before = self._processes()

    def fail(self, number: int) -> None:
        kind = self.random.choice([*KINDS])
        act, others = KINDS[kind]
        chosen = self.random.randrange(RANKS)
        text = CELL.format(number=number, chosen=chosen, act=act, others=others)
        run = self.lab.begin(text)
        if kind in STOPPED:
            while run.state in ("queued", "starting"):
                time.sleep(0.01)
            time.sleep(0.2 + self.random.random() / 2)
            run.cancel()
        began = time.monotonic()
        while not run.state.final:
            if time.monotonic() - began > 30:
                self.troubles.append(f"{kind}: hangs")
                return
            time.sleep(0.005)
        began = time.monotonic()
        for rank in range(RANKS):
            self.ledger[rank].append(number)
        self._revive()
        self._probe(kind, began)

    def _revive(self) -> None:
        for rank, process in self.lab.session.ranks.items():
            if process.outcome:
                self.lab.session.restart(rank)
                self.lab.there(BEGIN, rank=str(rank))
                self.ledger[rank] = []

    def _probe(self, kind: str, began: float) -> None:
        run = self.lab.there(PROBE)
        self.seconds[kind].append(time.monotonic() - began)
        expected = [
            f"[rank {rank}] {RANKS} {len(numbers)} {sum(numbers)}"
            for rank, numbers in enumerate(self.ledger)
        ]
        lines = sorted(line for line in run.logs().splitlines() if "[rank" in line)
        if run.state != "succeeded" or lines != expected:
            self.troubles.append(f"{kind}: {run.status.error[:300]} {lines}, expected {expected}")
        more = self._processes() - self.before
        if more > 0:
            time.sleep(0.5)
            more = self._processes() - self.before
        if more > 0:
            self.troubles.append(f"{kind}: {more} processes are left")

    def _processes(self) -> int:
        status = self.lab.session.status
        assert status.supervisor is not None
        return len(psutil.Process(status.supervisor.pid).children(recursive=True))


def main(seed: int, count: int) -> int:
    failures = Failures(seed)
    try:
        for number in range(1, count + 1):
            failures.fail(number)
    finally:
        failures.lab.session.stop()
    for kind, times in sorted(failures.seconds.items()):
        late = sum(seconds > USABLE_WITHIN_S for seconds in times)
        print(
            f"{kind}: {len(times)}, usable after {median(times):.2f} s, at most {max(times):.2f} s"
            + f", {late} later than {USABLE_WITHIN_S:g} s" * bool(late)
        )
    print(*failures.troubles, sep="\n")
    return len(failures.troubles)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"expected SEED COUNT: {Path(__file__).name}")
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
