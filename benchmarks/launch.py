"""From a cell to the first all_reduce done in two ranks: ours, torchrun, accelerate.

Every sample runs in a real kernel, the rivals interleaved. `python benchmarks/launch.py [ROUNDS]`;
the last line is one JSON object. Times are medians in seconds, memory is PSS in MB. `first` has
nothing warm; `first_warm` is ours in a notebook that imported torch 5 seconds before. A sample that
fails is said, counted in `failed`, and left out.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.machine import describe
from tests.kernels import Kernel, kernel

RERUNS = 4
DEADLOCKED_AFTER_S = 20.0
IMPORTED_BEFORE_S = 5.0

# What every rank does: the file it leaves says when the first all_reduce was done.
RANK = """
import torch, torch.distributed as dist, os, time
{work}
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
open({marks!r} + "/" + os.environ["RANK"], "w").write(repr(time.time()) + " " + str(os.getpid()))
time.sleep({hold})
dist.destroy_process_group()
"""

WORK = "torch.nn.functional.conv2d(torch.ones(8, 8, 64, 64), torch.ones(8, 8, 3, 3)).sum()"

HEAVY = ("torch", "tensorflow", "plotly", "pandas", "numpy", "ipywidgets", "anywidget", "boto3",
         "google.cloud", "sagemaker", "yaml", "distrain_nb.layout")  # fmt: skip

LOAD_EXT = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
began = time.perf_counter()
shell.run_line_magic("load_ext", "distrain_nb")
took = time.perf_counter() - began
print(took * 1000, *sorted(set(sys.modules) - before))
"""


class Failed(Exception):
    """A cell that did not do what is measured."""


class Bench:
    """One way of starting two ranks from a cell."""

    def __init__(self, name: str, setup: str, cell: Callable[[str], str]) -> None:
        self.name, self.setup, self.cell = name, setup, cell
        self.first: list[float] = []
        self.again: list[float] = []
        self.warm: list[float] = []
        self.ranks_pss: list[float] = []
        self.all_pss: list[float] = []
        self.failed = 0

    def sample(self, nb: Kernel, hold: float = 0.0, work: str = "") -> float:
        """Seconds from sending the cell to the last rank's first all_reduce. Raises Failed."""
        with tempfile.TemporaryDirectory() as marks:
            code = self.cell(RANK.format(marks=marks, hold=hold, work=work))
            began = time.time()
            sent = nb.send(code)
            done = self._wait(Path(marks))
            if hold:
                self._weigh([int(text.split()[1]) for text in done])
            try:
                error = nb.outcome(sent, DEADLOCKED_AFTER_S).error
            except TimeoutError:
                raise Failed(f"{self.name}: the cell does not end") from None
            if error:
                raise Failed(f"{self.name}: {error}")
        return max(float(text.split()[0]) for text in done) - began

    def _wait(self, marks: Path) -> list[str]:
        end = time.monotonic() + DEADLOCKED_AFTER_S
        while time.monotonic() < end:
            texts = [path.read_text() for path in marks.iterdir()]
            if len(texts) == 2 and all(len(text.split()) == 2 for text in texts):
                return texts
            time.sleep(0.005)
        raise Failed(f"{self.name}: no all_reduce within {DEADLOCKED_AFTER_S:g} s")

    def _weigh(self, ranks: list[int]) -> None:
        time.sleep(0.3)
        self.ranks_pss.append(sum(map(pss, ranks)))
        parents = {parent.pid for rank in ranks for parent in _starters(rank)}
        self.all_pss.append(sum(map(pss, {*ranks, *parents})))


def _starters(rank: int) -> Iterator[psutil.Process]:
    """The processes that exist only to start ranks: not the kernel, and nothing above it."""
    for parent in psutil.Process(rank).parents():
        words = " ".join(parent.cmdline())
        if "distrain_nb.worker.supervisor.forkserver" in words or "torch.distributed.run" in words:
            yield parent


def pss(pid: int) -> float:
    """Proportional set size in MB: shared pages are counted once, split among their users."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) / 1000 for line in text.splitlines() if line[:4] == "Pss:")


def ours() -> Bench:
    return Bench("distrain-nb", "%load_ext distrain_nb", lambda rank: f"%%distrain -n 2{rank}")


def torchrun() -> Bench:
    def cell(rank: str) -> str:
        return (
            f"from pathlib import Path; Path('rank.py').write_text({rank!r})\n"
            "import subprocess, sys\n"
            "subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node=2',"
            " '--standalone', 'rank.py'], check=True, capture_output=True)"
        )

    return Bench("torchrun", "pass", cell)


def accelerate() -> Bench:
    def cell(rank: str) -> str:
        body = "\n".join("    " + line for line in rank.strip().splitlines())
        return (
            f"def train():\n{body}\nfrom accelerate import notebook_launcher\n"
            "notebook_launcher(train, num_processes=2)"
        )

    return Bench("accelerate", "import os; os.environ['ACCELERATE_USE_CPU'] = 'true'", cell)


@contextmanager
def fresh(bench: Bench) -> Iterator[Kernel]:
    """A kernel in which nothing has been started, and no fork server from before."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "DISTRAIN_HOME": folder + "/home"}
        with kernel(Path(folder), environment) as nb:
            nb.run(bench.setup)
            yield nb
        for process in psutil.process_iter(["cmdline"]):
            if folder in " ".join(process.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
                    process.kill()
                    process.wait()


def measure(bench: Bench) -> None:
    with counted(bench), fresh(bench) as nb:
        bench.first.append(bench.sample(nb))
        for _ in range(RERUNS):
            bench.again.append(bench.sample(nb))
        bench.sample(nb, hold=1.5)


def measure_warm(bench: Bench) -> None:
    """The first run of a notebook that has imported torch a moment ago."""
    with counted(bench), fresh(bench) as nb:
        nb.run("import torch")
        time.sleep(IMPORTED_BEFORE_S)
        bench.warm.append(bench.sample(nb))


@contextmanager
def counted(bench: Bench) -> Iterator[None]:
    """A failure ends this round of one rival, not the benchmark."""
    try:
        yield
    except Failed as failed:
        bench.failed += 1
        print(failed)


def after_torch(bench: Bench) -> str:
    """A re-run once the kernel itself has used torch: seconds, or what went wrong."""
    with fresh(bench) as nb:
        nb.run(f"import torch\n{WORK}")
        try:
            bench.sample(nb, work=WORK)
            return f"{bench.sample(nb, work=WORK):.3f} s"
        except Failed as failed:
            return f"failed: {failed}"


def median(samples: list[float]) -> float:
    """NaN where every sample has failed."""
    return statistics.median(samples) if samples else math.nan


def load_ext() -> tuple[float, list[str]]:
    """Milliseconds of `%load_ext`, and the heavy modules among those that it imports."""
    times, modules = [], set[str]()
    for _ in range(7):
        printed = subprocess.run(
            [sys.executable, "-c", LOAD_EXT], capture_output=True, text=True, check=True
        ).stdout.split()
        times.append(float(printed[0]))
        modules |= set(printed[1:])
    print("modules that %load_ext imports:", *sorted(modules))
    return statistics.median(times), [name for name in HEAVY if name in modules]


def main(rounds: int) -> None:
    print(describe("torch", "accelerate", "ipykernel", "distrain-nb"))
    benches = [ours(), torchrun(), accelerate()]
    for _ in range(rounds):
        for bench in benches:
            measure(bench)
        measure_warm(benches[0])
    print(f"\n{'':12} {'first':>8} {'again':>8} {'ranks':>8} {'with starters':>14}")
    for bench in benches:
        figures = [median(each) for each in (bench.first, bench.again)]
        memory = [median(each) for each in (bench.ranks_pss, bench.all_pss)]
        print(
            f"{bench.name:12} {figures[0]:6.3f} s {figures[1]:6.3f} s"
            f" {memory[0]:5.0f} MB {memory[1]:11.0f} MB"
        )
    print(f"{benches[0].name}, torch imported before: {median(benches[0].warm):.3f} s")
    print("\nonce the kernel has used torch:")
    for bench in (ours(), accelerate()):
        print(f"{bench.name:12} {after_torch(bench)}")
    milliseconds, heavy = load_ext()
    print(f"%load_ext {milliseconds:.1f} ms, heavy modules: {', '.join(heavy) or 'none'}")
    mine, rival = benches[0], benches[1]

    def ratio(ours: list[float], theirs: list[float]) -> float | None:
        return round(median(ours) / median(theirs), 4) if ours and theirs else None

    print(json.dumps({
        "first_over_torchrun": ratio(mine.first, rival.first),
        "first_warm_over_torchrun": ratio(mine.warm, rival.first),
        "rerun_over_torchrun": ratio(mine.again, rival.again),
        "pss_over_torchrun": ratio(mine.ranks_pss, rival.ranks_pss),
        "pss_with_starters_over_torchrun": ratio(mine.all_pss, rival.all_pss),
        "load_ext_ms": round(milliseconds, 1),
        "failed": {bench.name: bench.failed for bench in benches if bench.failed},
    }))  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
