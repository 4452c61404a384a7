"""20 short jobs on Slurm, sent at once: a study, an executor's runs, and submitit with its array.

Every sample is sent to a real kernel, in turn, on a real cluster of this machine: Debian's
`slurmctld` with four `slurmd`. `python benchmarks/short_jobs.py [ROUNDS] [JOBS]`; the last line is
one JSON object. Times are medians in seconds, from sending the cell until it returns with the
results of all; `ran` is when the last job's own code has run, `cpu` the processor's time of all
processes that know the cluster. A first round fills caches and doesn't count. A sample that fails
ends the benchmark.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.clusters import PATIENCE_S, ready
from benchmarks.machine import describe
from tests.kernels import Kernel
from tests.slurm.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_EVERY_S = 0.05
SETUP = """
import distrain_nb as d
import submitit
"""
# Each has places for the folder of the marks and the number of jobs.
STUDY = """
study = d.tune(
    "import time; from distrain_nb import log_metrics; log_metrics(loss=n, step=1); "
    "open(f'{marks}/{{n}}', 'w').write(repr(time.time()))",
    on="slurm", cpus=1, tune="n=" + "|".join(map(str, range({count}))), goal="min:loss",
    trials={count}, parallel={count}, search="grid", wait=True,
)
assert study.best.params == {{"n": 0}}
"""
MARK = """
def mark(folder, n):
    import time
    open(f"{{folder}}/{{n}}", "w").write(repr(time.time()))
    return n
"""
RUNS = f"""{MARK}
with d.Executor(on="slurm", cpus=1) as executor:
    runs = executor.map(mark, ["{{marks}}"] * {{count}}, range({{count}}))
assert [run.result() for run in runs] == list(range({{count}}))
"""
SUBMITIT = f"""{MARK}
executor = submitit.AutoExecutor(folder="jobs", cluster="slurm")
executor.update_parameters(cpus_per_task=1, timeout_min=5)
"""
ONE_BY_ONE = f"""{SUBMITIT}
jobs = [executor.submit(mark, "{{marks}}", n) for n in range({{count}})]
assert [job.result() for job in jobs] == list(range({{count}}))
"""
ARRAY = f"""{SUBMITIT}
jobs = executor.map_array(mark, ["{{marks}}"] * {{count}}, range({{count}}))
assert [job.result() for job in jobs] == list(range({{count}}))
"""
RIVALS = {"study": STUDY, "runs": RUNS, "submitit": ONE_BY_ONE, "submitit_array": ARRAY}


class ProcessorTime:
    """The processor's time that processes take which have a text in their environment, as far as
    they live until a look."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._ours: dict[tuple[int, float], bool] = {}
        self._taken: dict[tuple[int, float], float] = {}

    @contextmanager
    def looking(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=lambda: self._look_until(over), daemon=True)
        thread.start()
        yield
        over.set()
        thread.join()

    @property
    def seconds(self) -> float:
        return sum(self._taken.values())

    def _look_until(self, over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            for process in psutil.process_iter(["create_time", "cpu_times"]):
                key, times = (process.pid, process.info["create_time"]), process.info["cpu_times"]
                if times and self._is_ours(key):
                    self._taken[key] = times.user + times.system

    def _is_ours(self, key: tuple[int, float]) -> bool:
        if key not in self._ours:
            try:
                self._ours[key] = self._text in Path(f"/proc/{key[0]}/environ").read_bytes()
            except OSError:
                return False
        return self._ours[key]


def sample(kernel: Kernel, name: str, count: int) -> tuple[float, float]:
    """Return the seconds until the last job has run, and until the cell returns. Raises
    RuntimeError with what a cell left whose jobs didn't all run."""
    with tempfile.TemporaryDirectory() as marks:
        began = time.time()
        outcome = kernel.run(RIVALS[name].format(marks=marks, count=count), PATIENCE_S)
        took = time.time() - began
        texts = [path.read_text() for path in Path(marks).iterdir()]
    if outcome.error or len(texts) < count:
        raise RuntimeError(f"{name}: {outcome.error or outcome.text[-2000:]}")
    return max(map(float, texts)) - began, took


def main(rounds: int = 3, count: int = 20) -> None:
    print(describe("submitit"))
    samples: dict[str, list[tuple[float, ...]]] = {name: [] for name in RIVALS}
    with tempfile.TemporaryDirectory(prefix="slurm-bench-") as name, ExitStack() as stack:
        cluster = Cluster(Path(name) / "cluster")
        stack.callback(cluster.stop)
        cluster.start()
        nb = stack.enter_context(ready(Path(name), cluster.environment, SETUP))
        cpu = ProcessorTime(f"{name}/cluster")
        stack.enter_context(cpu.looking())
        for number in range(rounds + 1):
            for rival in RIVALS:
                cluster.wait_idle()
                before = cpu.seconds
                ran, took = sample(nb, rival, count)
                cluster.wait_idle()
                used = cpu.seconds - before
                words = f"all had run after {ran:.2f} s, known after {took:.2f} s"
                print(f"{rival}: {words}, {used:.1f} s of the processor's", flush=True)
                if number:
                    samples[rival].append((ran, took, used))
    medians = {
        rival: [round(statistics.median(times), 2) for times in zip(*taken, strict=True)]
        for rival, taken in samples.items()
    }
    array = medians["submitit_array"][1]
    result = {f"{rival}_s": took for rival, (_, took, _) in medians.items()}
    result |= {f"{rival}_ran_s": ran for rival, (ran, _, _) in medians.items()}
    result |= {f"{rival}_cpu_s": used for rival, (_, _, used) in medians.items()}
    for rival in ("study", "runs"):
        result[f"{rival}_over_submitit_array"] = round(medians[rival][1] / array, 3)
    print(json.dumps({"jobs": count, **result}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
