"""Failures by chance in four ranks that stay: after each, they are usable, and names are as before.

`python -m tests.session.random_failures SEED COUNT` prints what it saw, one line for each kind.
`benchmarks/session_failures.py` does the same to other tools.
"""

from __future__ import annotations

import random
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from tests.session.lab import Lab

RANKS = 4
USABLE_WITHIN_S = 2.0
HANGS_AFTER_S = 20.0
STARTS_WITHIN_S = 120.0
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
def backward(hook):
    y = torch.ones(1, requires_grad=True)
    y.register_hook(hook)
    (y * 2).backward()
def broken(*_):
    raise ValueError("hook")
def slow(*_):
    time.sleep(60)
"""
# What one rank does, and what the others do meanwhile.
RAISES = {
    "raise before a collective": ("raise ValueError('before')", "dist.all_reduce(x)"),
    "raise after a collective": (
        "dist.all_reduce(x); raise ValueError('after')",
        "dist.all_reduce(x); dist.barrier()",
    ),
    "raise in a collective": ("dist.all_reduce(x, group=1)", "dist.all_reduce(x)"),
    "raise in a hook": ("backward(broken)", "dist.all_reduce(x)"),
    "raise in a loader's worker": (
        "list(DataLoader(Broken(), num_workers=1))",
        "dist.all_reduce(x)",
    ),
    "exit": ("sys.exit(3)", "dist.all_reduce(x)"),
    "all raise": ("raise ValueError('all')", "raise ValueError('all')"),
    "a collective too few": ("raise ValueError('few')", "dist.all_reduce(x); time.sleep(60)"),
}
STOPPED = {
    "stop before a collective": ("time.sleep(60)", "time.sleep(60)"),
    "stop in a collective": ("time.sleep(60)", "dist.all_reduce(x)"),
    "stop after a collective": (
        "dist.all_reduce(x); time.sleep(60)",
        "dist.all_reduce(x); dist.barrier()",
    ),
    "stop in a hook": ("backward(slow)", "dist.all_reduce(x)"),
    "stop in a loader's worker": (
        "list(DataLoader(Slow(), num_workers=1))",
        "dist.all_reduce(x)",
    ),
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
NAMES = "print('there', len(ledger), sum(ledger))"
PROBE = f"""\
import resource
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if not dist.is_initialized():
    dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
assert int(x) == {RANKS}
{NAMES}
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


class Unusable(Exception):
    """A cell that has nothing to fail by fails."""


class Hangs(Unusable):
    """It doesn't even end."""


class Tool(ABC):
    """Ranks that stay, of some tool."""

    title: str

    @abstractmethod
    def start(self) -> None:
        """Have ranks that know no names."""

    @abstractmethod
    def begin(self, text: str) -> None:
        """Send a cell to all ranks."""

    @abstractmethod
    def is_at_work(self) -> bool:
        """Return whether the ranks have the cell."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Return whether the cell that was sent last has come back, in whatever way."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop the cell."""

    @abstractmethod
    def printed(self) -> dict[int, str]:
        """Return what each rank has printed in the cell that has ended. Raises Unusable where a
        rank has failed."""

    @abstractmethod
    def replace_dead(self) -> set[int]:
        """Put new ranks, which know `BEGIN`, in the place of those that have died, and return their
        numbers. Raises Unusable where the tool can't."""

    @abstractmethod
    def processes(self) -> int:
        """Return how many processes there are below the tool."""

    @abstractmethod
    def stop(self) -> None:
        """End everything."""

    def run(self, text: str, within: float = HANGS_AFTER_S) -> dict[int, str]:
        """Run a cell that should succeed, and return what each rank has printed."""
        self.begin(text)
        if not self.ends_within(within):
            raise Hangs
        return self.printed()

    def ends_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self.has_ended():
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True


class Ours(Tool):
    """A session."""

    title = "ours"

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self) -> None:
        self.lab = Lab(RANKS, name=self._name)

    def begin(self, text: str) -> None:
        self._run = self.lab.begin(text)

    def is_at_work(self) -> bool:
        return self._run.state not in ("queued", "starting")

    def has_ended(self) -> bool:
        return self._run.state.final

    def interrupt(self) -> None:
        self._run.cancel()

    def printed(self) -> dict[int, str]:
        if self._run.state != "succeeded":
            raise Unusable(self._run.status.error[:300])
        lines = (line for line in self._run.logs().splitlines() if line.startswith("[rank "))
        parts = (line.removeprefix("[rank ").partition("] ") for line in lines)
        return {int(rank): text for rank, _, text in parts}

    def replace_dead(self) -> set[int]:
        dead = {rank for rank, process in self.lab.session.ranks.items() if process.outcome}
        for rank in dead:
            self.lab.session.restart(rank)
            self.lab.there(BEGIN, rank=str(rank))
        return dead

    def processes(self) -> int:
        status = self.lab.session.status
        assert status.supervisor is not None
        return len(psutil.Process(status.supervisor.pid).children(recursive=True))

    def stop(self) -> None:
        self.lab.session.stop()


@dataclass
class Outcome:
    """What one failure has cost.

    `ended_s` is from the stop, or else from the cell's beginning, to the cell's end; it is None
    where the cell hung. `usable_s` is from the cell's end to the end of the next that all ranks
    share; it is None where there was none without a new start. `lost` are living ranks whose names
    were not as before, `left` processes that stayed.
    """

    kind: str
    ended_s: float | None = None
    usable_s: float | None = None
    lost: int = 0
    left: int = 0
    words: str = ""

    @property
    def trouble(self) -> str:
        said = {
            "hangs": self.ended_s is None,
            "isn't usable": self.usable_s is None,
            f"{self.lost} ranks have lost names": self.lost,
            f"{self.left} processes are left": self.left,
        }
        wrong = [text for text, is_so in said.items() if is_so]
        return f"{self.kind}: {', '.join(wrong)}; {self.words}" if wrong else ""


class Failures:
    """The ranks of one tool, which fail one time after another."""

    def __init__(self, tool: Tool, seed: int) -> None:
        self.tool = tool
        self._random = random.Random(seed)
        self._start()

    def _start(self) -> None:
        self.tool.start()
        self.tool.run(BEGIN, STARTS_WITHIN_S)
        self.tool.run(PROBE, STARTS_WITHIN_S)
        self._ledger = [list[int]() for _ in range(RANKS)]
        self._before = self.tool.processes()

    def fail(self, number: int) -> Outcome:
        """Have a rank fail, and see what is left."""
        outcome = Outcome(self._random.choice([*KINDS]))
        act, others = KINDS[outcome.kind]
        chosen = self._random.randrange(RANKS)
        self.tool.begin(CELL.format(number=number, chosen=chosen, act=act, others=others))
        began = self._stop() if outcome.kind in STOPPED else time.monotonic()
        for numbers in self._ledger:
            numbers.append(number)
        if self.tool.ends_within(HANGS_AFTER_S):
            outcome.ended_s = time.monotonic() - began
        else:
            self.tool.interrupt()  # as a user would
            self.tool.ends_within(HANGS_AFTER_S / 3)
        self._look(outcome)
        if outcome.usable_s is None:
            self.tool.stop()
            self._start()
        return outcome

    def _stop(self) -> float:
        """Stop the cell once the ranks are in it, and return when."""
        while not self.tool.is_at_work():
            time.sleep(0.01)
        time.sleep(0.3 + self._random.random() / 2)
        self.tool.interrupt()
        return time.monotonic()

    def _look(self, outcome: Outcome) -> None:
        """See which names are there, and whether all ranks can meet."""
        began = time.monotonic()
        known = 0
        try:
            for rank in self.tool.replace_dead():
                self._ledger[rank] = []
            known = self._known(self.tool.run(PROBE))
            outcome.usable_s = time.monotonic() - began
        except Hangs:
            outcome.words = "no further cell runs"
        except Unusable as error:
            outcome.words = str(error)
            known = self._known_alone()
        living = RANKS - (outcome.kind in DEATHS and outcome.usable_s is None)
        outcome.lost = max(0, living - known)
        until = time.monotonic() + 1.0
        while self.tool.processes() > self._before and time.monotonic() < until:
            time.sleep(0.05)
        outcome.left = max(0, self.tool.processes() - self._before)

    def _known_alone(self) -> int:
        """Return how many ranks still know their names, asked without a collective."""
        try:
            return self._known(self.tool.run(NAMES))
        except Unusable:
            return 0

    def _known(self, printed: dict[int, str]) -> int:
        expected = (f"there {len(numbers)} {sum(numbers)}" for numbers in self._ledger)
        return sum(text in printed.get(rank, "") for rank, text in enumerate(expected))


def by_kind(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        kinds[outcome.kind].append(outcome)
    return kinds


def main(seed: int, count: int) -> int:
    failures = Failures(Ours(f"failures-{seed}"), seed)
    try:
        outcomes = [failures.fail(number) for number in range(1, count + 1)]
    finally:
        failures.tool.stop()
    for kind, same in sorted(by_kind(outcomes).items()):
        times = [outcome.usable_s or HANGS_AFTER_S for outcome in same]
        late = sum(seconds > USABLE_WITHIN_S for seconds in times)
        print(
            f"{kind}: {len(times)}, usable after {median(times):.2f} s, at most {max(times):.2f} s"
            + f", {late} later than {USABLE_WITHIN_S:g} s" * bool(late)
        )
    troubles = [outcome.trouble for outcome in outcomes if outcome.trouble]
    print(*troubles, sep="\n")
    return len(troubles)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"expected SEED COUNT: {Path(__file__).name}")
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
